// What a daemon takes of its process's limits, looked at before it starts: libzmq ends the process where it gets no
// descriptor or no thread, and its abort cannot be caught.
#pragma once

#include <cstddef>

#include "ipc/status.hpp"

namespace railhead::daemon {

// A daemon that is ready and serves nobody holds 18 descriptors and 6 for each proxy; the first sessions find some
// more.
constexpr std::size_t descriptors_needed(std::size_t proxies) {
  return 32 + 8 * proxies;
}

// Beside the proxies: control, mesh, signals, and two of libzmq.
constexpr std::size_t threads_needed(std::size_t proxies) {
  return 5 + proxies;
}

// limit_exceeded says which limit, and what raises it.
Status check_resources(std::size_t proxies);

}  // namespace railhead::daemon
