// The hidden subcommand `rank`: one rank process, which does what the launcher asks for and sleeps in between.
#pragma once

#include "tools/ep-bench/rank/service.hpp"

namespace railhead::bench {

// Serves kChannelFd until it is closed. Exit code.
int rank_main(const RankArguments& arguments);

}  // namespace railhead::bench
