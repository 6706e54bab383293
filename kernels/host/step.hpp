// Roles are resumable: a step does a bounded piece of work and says how it went; it never waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace railhead::kernels {

enum class Step : std::uint8_t {
  blocked,     // nothing could be done now: a credit, a chunk, a span is missing
  progressed,  // something was done, more is left
  done,
};

// Records that one step handles at most: about 100 us of copying at H = 7168, so that roles of one rank share a thread.
inline constexpr std::uint32_t kStepRecords = 32;

// A role and whether it is through: for those who step several.
template <class Role>
struct Tracked {
  template <class... Args>
  explicit Tracked(Args&&... args) : role(std::forward<Args>(args)...) {}

  Role role;
  bool done = false;
};

template <class Roles>
bool all_done(const Roles& roles) {
  return std::all_of(roles.begin(), roles.end(), [](const auto& tracked) { return tracked.done; });
}

}  // namespace railhead::kernels
