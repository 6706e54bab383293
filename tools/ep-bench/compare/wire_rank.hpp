// The hidden subcommand `wire-rank`: one of two ranks that exchange ring slots through their daemons and nothing else.
// It speaks the daemon's protocol itself, as the client library would, because the library offers no operation without
// tokens to pack and rows to place.
#pragma once

#include "tools/ep-bench/rank/service.hpp"

namespace railhead::bench {

// open_group makes the group; loop moves `count` slots from rank 0 to rank 1. Exit code.
int wire_rank_main(const RankArguments& arguments);

// Bytes of a slot for this workload on two hosts.
std::uint32_t wire_slot_bytes(const Workload& work);

}  // namespace railhead::bench
