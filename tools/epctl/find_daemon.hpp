// Which daemon an operator means.
#pragma once

#include <string>

#include "ipc/status.hpp"

namespace railhead::epctl {

// `wanted` (--socket) if it is not empty; else RAILHEAD_DAEMON where it is a path or "system"; else the system daemon
// if it listens; else this user's private daemon if exactly one listens. unavailable when there is none,
// invalid_argument when there are several: the message lists them. Never blocks.
Result<std::string> find_daemon(const std::string& wanted);

// 0 when a daemon listens at that socket, else the errno that says why not. Never blocks.
int knock(const std::string& path);

}  // namespace railhead::epctl
