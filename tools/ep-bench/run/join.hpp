// This process as one rank of a group over daemons that run already.
#pragma once

#include "tools/ep-bench/run/options.hpp"
#include "tools/ep-bench/run/summary.hpp"

namespace railhead::bench {

// Figures of this rank alone. Between rounds the ranks meet in an empty dispatch, as they may share no memory.
Result<Summary> join_as_rank(const RunOptions& options, const Workload& work);

}  // namespace railhead::bench
