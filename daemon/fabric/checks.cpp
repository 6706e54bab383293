#include "daemon/fabric/checks.hpp"

#include <sys/random.h>

#include <cerrno>

namespace railhead::fabric {
namespace {

std::string name_of_region(RegionId region) {
  return "memory region " + std::to_string(static_cast<std::uint32_t>(region));
}

}  // namespace

Result<std::uint64_t> random_key(std::size_t bytes) {
  std::uint64_t key = 0;
  while (key == 0) {
    if (::getrandom(&key, sizeof key, 0) != sizeof key) return fail(system_status("getrandom for a key", errno));
    if (bytes < sizeof key) key &= (std::uint64_t{1} << (8 * bytes)) - 1;
  }
  return key;
}

Result<void> check_region(const void* address, std::size_t bytes) {
  if (address != nullptr && bytes > 0) return {};
  return fail(Code::invalid_argument, "cannot register " + std::to_string(bytes) + " bytes at a " +
                                          (address ? "valid" : "null") + " address: it needs at least one byte");
}

Result<void> check_source(const Write& write, std::size_t region_bytes) {
  if (fits(write.local_offset, write.bytes, region_bytes)) return {};
  return fail(Code::invalid_argument,
              "write of " + std::to_string(write.bytes) + " bytes at offset " + std::to_string(write.local_offset) +
                  " leaves " + name_of_region(write.local) + " of " + std::to_string(region_bytes) + " bytes");
}

tl::unexpected<Status> unknown_region(RegionId region) {
  return fail(Code::invalid_argument, name_of_region(region) + " is not registered here");
}

tl::unexpected<Status> region_busy(RegionId region, std::size_t in_flight) {
  return fail(Code::invalid_usage, name_of_region(region) + " is the source of " + std::to_string(in_flight) +
                                       " outstanding writes: poll until they are done, then deregister");
}

tl::unexpected<Status> not_up(PeerId peer) {
  return fail(Code::peer_lost,
              name_of(peer) + " is not connected (ENOTCONN): it is still connecting, or its peer_down is on the way");
}

Status closed_here(PeerId peer) {
  return {Code::aborted, "the connection to " + name_of(peer) + " was closed on this side (ECANCELED)"};
}

}  // namespace railhead::fabric
