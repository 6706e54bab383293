// What every peer program needs of its process: exit codes, an end in time, a place to run.
#pragma once

#include <sys/types.h>

#include <functional>

#include "ipc/status.hpp"

namespace railhead::peers {

enum ExitCode : int { kOk = 0, kFailed = 1, kUsage = 2, kDeadline = 3 };

// Ends this process with kDeadline and a line on stderr when `seconds` (> 0) have passed. `program` is kept.
void end_after(unsigned seconds, const char* program);

// Binds the calling thread. cpu -1 leaves it where it is; a CPU that is not there is an error.
Status pin_to_cpu(int cpu);

// Monotonic seconds.
double now();

// One pause of a wait loop: a CPU hint at first, then the core for others. `spins` counts from 0 in each wait.
void relax(unsigned& spins);

// Runs `body` in a child that dies with its parent and exits with what `body` returns.
Result<pid_t> run_in_child(const std::function<int()>& body);

// The exit code of a child; kFailed where a signal ended it.
int wait_for_child(pid_t pid);

}  // namespace railhead::peers
