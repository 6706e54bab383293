#include "tools/ep-bench/run/summary.hpp"

#include <algorithm>

#include "tools/ep-bench/stats.hpp"

namespace railhead::bench {

void Summary::add(const std::vector<RoundSample>& round) {
  std::uint64_t dispatch = 0, combine = 0, total = 0;
  for (const RoundSample& s : round) {
    dispatch = std::max(dispatch, s.dispatch_ns);
    combine = std::max(combine, s.combine_ns);
    total = std::max(total, s.total_ns);
    rows_ += static_cast<double>(s.rows);
    received_bytes_ += static_cast<double>(s.received_bytes);
    rail_bytes_ += static_cast<double>(s.rail_bytes);
    dispatch_transfer_ns_ += static_cast<double>(s.dispatch_transfer_ns);
    combine_transfer_ns_ += static_cast<double>(s.combine_transfer_ns);
    dispatch_wait_ns_ += static_cast<double>(s.dispatch_wait_ns);
    combine_wait_ns_ += static_cast<double>(s.combine_wait_ns);
    ++samples_;
  }
  dispatch_ms_.push_back(static_cast<double>(dispatch) / 1e6);
  combine_ms_.push_back(static_cast<double>(combine) / 1e6);
  total_ms_.push_back(static_cast<double>(total) / 1e6);
  // All ranks of a host say the same; rank 0 speaks for them.
  const auto count = [](std::vector<std::uint64_t>& counts, std::int32_t rank) {
    if (rank >= 0 && static_cast<std::size_t>(rank) < counts.size()) ++counts[static_cast<std::size_t>(rank)];
  };
  count(last_dispatch_, round[0].last_rank_dispatch);
  count(last_combine_, round[0].last_rank_combine);
}

Times Summary::times(const std::vector<double>& samples) {
  return {median(samples), percentile(samples, 99)};
}

}  // namespace railhead::bench
