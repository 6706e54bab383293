// How much memory a new segment can really get, asked before it is taken: the alternative is the OOM killer or SIGBUS.
#pragma once

#include <cstdint>
#include <string>

#include "ipc/status.hpp"

namespace railhead::ipc {

struct MemoryHeadroom {
  std::uint64_t free_bytes = 0;
  std::string limited_by;  // "MemAvailable of the host", or the memory cgroup's path
};

// Where the kernel's figures are read; tests point them at made-up trees.
struct MemoryRoots {
  std::string proc = "/proc";
  std::string cgroup_v1 = "/sys/fs/cgroup/memory";
  std::string cgroup_v2 = "/sys/fs/cgroup";
};

// The least of MemAvailable and of what is left in this process's memory cgroup and all that enclose it (v1 and v2).
// Clean page cache of a cgroup counts as free: the kernel drops it first. Missing files mean "no limit of that kind";
// only a missing MemAvailable is an error (Code::system).
Result<MemoryHeadroom> memory_headroom(const MemoryRoots& roots = {});

}  // namespace railhead::ipc
