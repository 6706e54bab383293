// SIGINT and SIGTERM as a flag that every wait of the launcher looks at, so that the way out is the ordinary one and
// everything that was made is removed.
#pragma once

#include "ipc/deadline.hpp"
#include "ipc/status.hpp"

namespace railhead::bench {

// For the life of the process; system calls are not restarted.
void catch_interrupts();
[[nodiscard]] bool interrupted() noexcept;

// Code::aborted when interrupted, Code::timeout (with `what`, which names who is waited for) when the deadline passed.
Status keep_waiting(ipc::Deadline deadline, const char* what);

}  // namespace railhead::bench
