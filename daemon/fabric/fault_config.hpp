// What the fault decorator injects, and its text form "seed=1,reorder=8,delay=16,dup=0.05".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ipc/status.hpp"

namespace railhead::fabric {

// 0 switches a fault off.
struct FaultConfig {
  std::uint64_t seed = 1;        // same seed and same calls, same faults
  std::uint64_t delay = 0;       // a write, and on arrival its immediate, is held back for 0..delay polls
  std::uint64_t reorder = 0;     // a write or an immediate is overtaken by at most this many later ones
  double dup = 0;                // probability that an immediate is delivered twice
  double resend = 0;             // probability that a write is posted twice before it is reported
  std::uint64_t fail_nth = 0;    // the n-th write fails with a named error, and its peer goes down
  std::uint64_t drop_after = 0;  // after the n-th write its peer goes down
  std::uint64_t slow = 0;        // bytes of writes that leave per poll

  bool any() const;
  std::string to_string() const;
};

// invalid_argument names the item, what is wrong with it and what is known.
Result<FaultConfig> parse_faults(std::string_view text);

}  // namespace railhead::fabric
