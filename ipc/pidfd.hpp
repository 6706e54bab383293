// Process descriptors: the fence that says a process is gone, whatever its pid is reused for.
#pragma once

#include <sys/types.h>

#include "ipc/deadline.hpp"
#include "ipc/fd.hpp"
#include "ipc/status.hpp"

namespace railhead::ipc {

// Of the calling process, close-on-exec; to be sent to the daemon, which could not open it from another PID namespace.
Result<UniqueFd> open_own_pidfd();

// For a descriptor that a client sent: is it of the process `kernel_pid` that the kernel named for the socket? 0 stands
// for a client in a PID namespace that is not ours or below: the fence then rests on its word. False also for a process
// that was reaped; Code::protocol when the descriptor is not a pidfd.
Result<bool> pidfd_matches(int pidfd, pid_t kernel_pid);

// Waits until the process has ended (all its threads, reaped or not). False when the deadline passed first.
// Once true, no thread of the process stores to memory any more.
Result<bool> wait_exit(int pidfd, Deadline deadline);

}  // namespace railhead::ipc
