// Checks and sentences that every back end shares.
#pragma once

#include <cstddef>
#include <cstdint>

#include "daemon/fabric/fabric.hpp"

namespace railhead::fabric {

// [offset, offset + bytes) lies in [0, limit), without overflow.
constexpr bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t limit) {
  return bytes <= limit && offset <= limit - bytes;
}

// Random, never 0, of the given width: a guess must not hit another group's memory.
Result<std::uint64_t> random_key(std::size_t bytes);

Result<void> check_region(const void* address, std::size_t bytes);
Result<void> check_source(const Write& write, std::size_t region_bytes);

tl::unexpected<Status> unknown_region(RegionId region);
tl::unexpected<Status> region_busy(RegionId region, std::size_t in_flight);
tl::unexpected<Status> not_up(PeerId peer);
Status closed_here(PeerId peer);

}  // namespace railhead::fabric
