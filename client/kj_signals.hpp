// KJ's event port takes over SIGPIPE and a reserved signal for the whole process; a library must leave both as it found
// them. Our threads block all signals, so neither is needed here.
#pragma once

#include <kj/async-io.h>

namespace railhead::client {

// kj::setupAsyncIo() with the process's signal dispositions as they were before.
kj::AsyncIoContext setup_async_io();

}  // namespace railhead::client
