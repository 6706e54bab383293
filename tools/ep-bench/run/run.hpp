// `ep-bench run` and `ep-bench demo`.
#pragma once

#include "tools/ep-bench/run/options.hpp"

namespace railhead::bench {

enum ExitCode : int { kOk = 0, kFailed = 1, kUsage = 2 };

// Launches daemons and ranks, or joins running daemons as one rank; prints the table or JSON. Exit code.
int run(const RunOptions& options);

}  // namespace railhead::bench
