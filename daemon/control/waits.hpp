// What the ranks of a group wait for, as their live words say. Words are read once; what a rank wrote there is shown,
// not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/group/local_group.hpp"

namespace railhead::daemon {

struct WaitView {
  std::uint32_t rank = 0;
  std::uint64_t op = 0;
  std::string phase;
  std::int32_t peer = -1;  // rank that is waited for; -1 = several or none
  std::uint32_t got = 0;
  std::uint32_t of = 0;
  std::uint64_t since_ms = 0;
  std::uint64_t refused_op = 0;  // instead of the above: a call of this number was refused and not made again
  std::string reason;            // why it was
};

// Local ranks of a running group that wait in an operation, then ranks of any host whose last call was refused.
std::vector<WaitView> waits_of(const LocalGroup& group);
// "rank 3 has waited 5012 ms in op 12: phase headers, for rank 1, got 3 of 4"
std::string sentence(const WaitView& wait);

}  // namespace railhead::daemon
