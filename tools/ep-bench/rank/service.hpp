// The launcher's side of a rank process: commands in, answers out, asleep in between.
#pragma once

#include <functional>
#include <string>

#include "tools/ep-bench/rank/control.hpp"
#include "tools/ep-bench/workload.hpp"

namespace railhead::bench {

struct RankArguments {
  std::string workload;  // file
  std::string daemon;    // socket
  std::uint32_t rank = 0;
};

// Fills the answer; its status and sentence come from the result.
using Performer = std::function<Status(const Command&, Answer&)>;

// Tells the launcher that this rank is ready and serves kChannelFd until it is closed. Exit code.
int serve_commands(const Performer& perform);
// Instead, when there will be nothing to serve. Exit code.
int report_failure(const Status& status);

}  // namespace railhead::bench
