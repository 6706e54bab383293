// Process descriptors: the fence that says a process is gone, whatever its pid is reused for.
#pragma once

#include <sys/types.h>

#include "ipc/deadline.hpp"
#include "ipc/fd.hpp"
#include "ipc/status.hpp"

namespace railhead::ipc {

// Of the calling process, close-on-exec; to be sent to the daemon, which could not open it from another PID namespace.
Result<UniqueFd> open_own_pidfd();

// The pid behind a descriptor, as /proc of this PID namespace counts: 0 when the process lives in a namespace that is
// not ours or below, -1 when it was already reaped. Code::protocol when the descriptor is not a pidfd.
Result<pid_t> pidfd_pid(int pidfd);

// For a descriptor that a client sent: is it of the process `kernel_pid` that the kernel named for the socket? A client
// in a PID namespace that we cannot see counts as 0 on both sides and matches: the fence then rests on its word.
Result<bool> pidfd_matches(int pidfd, pid_t kernel_pid);

// Waits until the process has ended (all its threads, reaped or not). False when the deadline passed first.
// Once true, no thread of the process stores to memory any more.
Result<bool> wait_exit(int pidfd, Deadline deadline);

}  // namespace railhead::ipc
