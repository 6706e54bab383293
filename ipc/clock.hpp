// The one clock of durations and stamps: monotonic, the same for all processes of a host.
#pragma once

#include <time.h>

#include <cstdint>

namespace railhead::ipc {

inline std::uint64_t steady_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace railhead::ipc
