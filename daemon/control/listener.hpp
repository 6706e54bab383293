// The daemon's UNIX socket.
#pragma once

#include <string>

#include "daemon/config/config.hpp"
#include "ipc/fd.hpp"
#include "ipc/status.hpp"

namespace railhead::daemon {

// The socket that systemd passed (LISTEN_FDS), else a new one at config.socket with its configured group and mode; it
// is never open wider than configured. A socket file that nobody listens on is replaced, one with a daemon behind it is
// an error.
Result<ipc::UniqueFd> listen_socket(const config::Config& config);

// What listen_socket refuses for its name or its group; makes nothing.
Status check_socket(const config::Config& config);

// A private daemon that drains makes room for the next one: whoever looks for a daemon at `path` finds none and starts
// another. Operators find it under the returned path, in the same folder and with the same ending.
Result<std::string> move_socket_aside(const std::string& path);

}  // namespace railhead::daemon
