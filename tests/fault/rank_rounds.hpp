// One dispatch and its combine with values that anybody can recompute: what a rank process of the fault tests does.
#pragma once

#include <cstdint>
#include <string>

#include "railhead/railhead.hpp"

namespace railhead::test {

// Deterministic in (group shape, seed, rank): every rank knows what every other rank sends.
struct RoundSpec {
  std::uint32_t tokens = 8;
  std::uint32_t seed = 1;
  rh_layout layout = RH_LAYOUT_RANK;
};

// The arguments of this rank's dispatch; owns what they point to.
class Outgoing {
 public:
  Outgoing(const rh_group_config& config, std::uint32_t rank, const RoundSpec& spec);
  [[nodiscard]] const rh_dispatch_args& args() const { return args_; }
  [[nodiscard]] rh_dispatch_args& args() { return args_; }

 private:
  std::vector<float> x_;
  std::vector<std::int64_t> ids_;
  rh_dispatch_args args_;
};

// Empty when every received row is what its source sent, else the first difference.
std::string wrong_row(const rh_group_config& config, const rh_dispatch_result& result, const RoundSpec& spec);

// Dispatch, check, combine of the rows as received, check. Throws railhead::Error for what the library says and
// std::runtime_error for a wrong value.
void run_round(const Group& group, const rh_group_config& config, const RoundSpec& spec);

}  // namespace railhead::test
