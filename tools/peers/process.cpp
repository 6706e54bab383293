#include "tools/peers/process.hpp"

#include <immintrin.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

namespace railhead::peers {
namespace {

const char* program_name = "peer";

void on_alarm(int) {
  // Only async-signal-safe calls; what cannot be written is lost.
  for (const std::string_view part :
       {std::string_view(program_name), std::string_view(": deadline passed (--timeout)\n")}) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, part.data(), part.size());
  }
  _exit(kDeadline);
}

}  // namespace

void end_after(unsigned seconds, const char* program) {
  program_name = program;
  std::signal(SIGALRM, on_alarm);
  alarm(seconds);
}

Status pin_to_cpu(int cpu) {
  if (cpu < 0) return {};
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu >= CPU_SETSIZE) return {Code::invalid_argument, "CPU " + std::to_string(cpu) + " is beyond CPU_SETSIZE"};
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) == 0) return {};
  return system_status("bind to CPU " + std::to_string(cpu), errno);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void relax(unsigned& spins) {
  constexpr unsigned kSpinsBeforeYield = 200;  // a few microseconds: longer than a cache line takes between two cores
  if (spins++ < kSpinsBeforeYield) {
    _mm_pause();
  } else {
    sched_yield();
  }
}

Result<pid_t> run_in_child(const std::function<int()>& body) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail(system_status("fork", errno));
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailed);  // the parent went between fork and prctl
  const int code = body();
  std::fflush(nullptr);
  _exit(code);
}

int wait_for_child(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return kFailed;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
}

}  // namespace railhead::peers
