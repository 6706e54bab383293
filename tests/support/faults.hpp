// fabric.fault of tests that want every fault at once: writes and immediates that come late, out of order and twice,
// and writes that are repeated.
#pragma once

#include <cstdint>
#include <string>

namespace railhead::test {

inline constexpr const char* kAllFaults = "reorder=8,delay=16,dup=0.2,resend=0.2";

inline std::string all_faults(std::uint64_t seed) {
  return "seed=" + std::to_string(seed) + "," + kAllFaults;
}

}  // namespace railhead::test
