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

}  // namespace railhead::daemon
