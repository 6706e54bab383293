// Why no daemon answers at a socket's path, and what helps.
#pragma once

#include <string>

#include "ipc/status.hpp"

namespace railhead::client {

// For the errno that connect() to this path gave: permission (with who may connect), invalid_argument where the path
// can never be one of a daemon, unavailable where none listens now, system for anything else.
Status why_unreachable(const std::string& path, int error);

}  // namespace railhead::client
