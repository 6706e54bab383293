#include "daemon/group/unique_id.hpp"

#include <sys/random.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace railhead::daemon {
namespace {

constexpr std::size_t kMost = 256;
constexpr std::array<std::uint8_t, 4> kMagic = {'R', 'H', 'I', '1'};
// magic, key, secret, host, endpoint length, endpoint, checksum
constexpr std::size_t kFixed = kMagic.size() + 3 * 16 + 1;
constexpr std::size_t kChecksum = 4;

}  // namespace

Result<std::vector<std::uint8_t>> encode(const UniqueId& id) {
  if (kFixed + id.endpoint.size() + kChecksum > kMost) {
    return fail(Code::limit_exceeded,
                "mesh endpoint '" + id.endpoint + "' is too long for a unique id: set mesh.advertise to a shorter one");
  }
  std::vector<std::uint8_t> out(kMagic.begin(), kMagic.end());
  out.insert(out.end(), id.key.begin(), id.key.end());
  out.insert(out.end(), id.secret.begin(), id.secret.end());
  out.insert(out.end(), id.host.bytes.begin(), id.host.bytes.end());
  out.push_back(static_cast<std::uint8_t>(id.endpoint.size()));
  out.insert(out.end(), id.endpoint.begin(), id.endpoint.end());
  const auto sum = static_cast<std::uint32_t>(::crc32_z(0, out.data(), out.size()));
  for (unsigned shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::uint8_t>(sum >> shift));
  return out;
}

Result<UniqueId> decode_unique_id(std::span<const std::uint8_t> bytes) {
  const auto bad = [] {
    return fail(Code::invalid_argument,
                "the unique id is not one that rh_unique_id_create made: pass its 256 bytes unchanged");
  };
  if (bytes.size() < kFixed + kChecksum || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) return bad();
  const std::size_t length = bytes[kFixed - 1];
  if (bytes.size() < kFixed + length + kChecksum) return bad();
  const auto sum = static_cast<std::uint32_t>(::crc32_z(0, bytes.data(), kFixed + length));
  for (unsigned i = 0; i < kChecksum; ++i) {
    if (bytes[kFixed + length + i] != static_cast<std::uint8_t>(sum >> (8 * i))) return bad();
  }
  UniqueId out;
  auto at = bytes.begin() + kMagic.size();
  const auto take = [&at](auto& into) {
    std::copy_n(at, into.size(), into.begin());
    at += static_cast<std::ptrdiff_t>(into.size());
  };
  take(out.key);
  take(out.secret);
  take(out.host.bytes);
  ++at;
  out.endpoint.assign(at, at + static_cast<std::ptrdiff_t>(length));
  return out;
}

Result<std::array<std::uint8_t, 16>> random_bytes() {
  std::array<std::uint8_t, 16> out{};
  if (::getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size())) {
    return fail(system_status("getrandom", errno));
  }
  return out;
}

std::string short_name(const GroupKey& key) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < 4; ++i) {
    out += kDigits[key[i] >> 4];
    out += kDigits[key[i] & 15];
  }
  return out;
}

}  // namespace railhead::daemon
