// Daemons of a run: one epd per node, with a socket, a log and ports of its own.
#pragma once

#include <string>
#include <vector>

#include "tools/ep-bench/launch/child.hpp"
#include "tools/ep-bench/launch/network.hpp"
#include "tools/ep-bench/launch/temp_dir.hpp"

namespace railhead::bench {

struct NodeDaemon {
  Child process;
  std::string socket;
  std::string log;
};

// A program that was built or installed beside this one. unavailable, naming the folder.
Result<std::string> program_beside(const std::string& name);
// This program.
Result<std::string> own_path();

struct DaemonOptions {
  std::string fault;         // fabric.fault
  bool pin_proxies = false;  // those of node i to core i
};

// Returns when all of them accept clients. Errors hold the end of the daemon's log.
Result<std::vector<NodeDaemon>> start_daemons(const TempDir& folder, const Network& network,
                                              const DaemonOptions& options, ipc::Deadline deadline);

// The last lines of a log, or an empty string.
std::string end_of_log(const std::string& path);

}  // namespace railhead::bench
