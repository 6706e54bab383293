#include "daemon/mesh/host_id.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace railhead::mesh {
namespace {

bool absent(const std::string& path) {
  return ::access(path.c_str(), F_OK) != 0 && errno == ENOENT;
}

Status cannot_create(const std::string& path, int error) {
  return system_status("cannot create the host id file " + path, error);
}

Result<HostId> read_host_id(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return fail(Code::system, "cannot read a host id from " + path);
  auto id = parse_host_id(line);
  if (!id)
    return fail(Code::invalid_argument, path + ": " + id.error().message() + "; remove the file to get a new id");
  return id;
}

Result<HostId> create_host_id(const std::string& path) {
  auto id = random_host_id();
  if (!id) return id;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return fail(cannot_create(path, errno));
  const std::string text = id->hex() + "\n";
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  ::close(fd);
  if (!written) {
    ::unlink(path.c_str());  // half an id must not be read by the next start
    return fail(system_status("cannot write the host id file " + path, error));
  }
  return id;
}

}  // namespace

std::string HostId::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Result<HostId> random_host_id() {
  HostId id;
  if (::getrandom(id.bytes.data(), id.bytes.size(), 0) != static_cast<ssize_t>(id.bytes.size())) {
    return fail(system_status("cannot read random bytes for a host id", errno));
  }
  return id;
}

Result<HostId> parse_host_id(std::string_view text) {
  HostId id;
  bool valid = text.size() == 2 * id.bytes.size();
  for (std::size_t i = 0; valid && i < id.bytes.size(); ++i) {
    const char* begin = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, id.bytes[i], 16);
    valid = error == std::errc{} && end == begin + 2;
  }
  if (!valid || id == HostId{}) {
    return fail(Code::invalid_argument,
                "a host id is 32 hexadecimal digits, not all zero; got '" + std::string(text.substr(0, 64)) + "'");
  }
  return id;
}

Result<HostId> load_or_create_host_id(const std::string& path) {
  if (path.empty()) return random_host_id();
  return absent(path) ? create_host_id(path) : read_host_id(path);
}

Status check_host_id_file(const std::string& path) {
  if (path.empty()) return {};
  if (!absent(path)) {
    const auto id = read_host_id(path);
    return id ? Status() : id.error();
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const bool writable = ::faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  return writable ? Status() : cannot_create(path, errno);
}

std::size_t HostIdHash::operator()(const HostId& id) const noexcept {
  std::size_t value = 0;
  std::memcpy(&value, id.bytes.data(), sizeof value);  // the bytes are random already
  return value;
}

}  // namespace railhead::mesh
