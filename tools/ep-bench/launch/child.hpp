// A program started by the launcher: it dies with the launcher, and is gone when its owner is.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ipc/deadline.hpp"
#include "ipc/status.hpp"

namespace railhead::bench {

struct SpawnOptions {
  int network = -1;                       // descriptor of a network namespace to run in; -1: the launcher's own
  std::vector<int> cores;                 // where to run; empty: as the launcher
  std::vector<std::pair<int, int>> pass;  // descriptor here, its number there; everything else is closed on exec
  std::string output;                     // file for stdout and stderr; empty: the launcher's
  int stdout_fd = -1;                     // or: a pipe for stdout alone
};

class Child {
 public:
  Child() = default;
  // `name` is for messages. argv[0] is a path or is looked up in PATH. In a process group of its own, so that a Ctrl-C
  // on the terminal reaches the launcher only, which ends its children in order.
  static Result<Child> spawn(std::string name, const std::vector<std::string>& argv, const SpawnOptions& options = {});
  Child(Child&& other) noexcept : name_(std::move(other.name_)), pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(name_, other.name_);
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~Child();  // kills

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool running() const noexcept { return pid_ > 0; }

  void send_signal(int number) const noexcept;
  // Reaps if it has ended: "rank 3 ended with exit code 1", "... was killed by signal 9". Nothing while it runs.
  std::optional<std::string> ended();
  // Waits for the end; exit code, or 128 + signal. timeout and interruption leave it running.
  Result<int> wait(ipc::Deadline deadline);
  // SIGTERM, then SIGKILL after the deadline; returns when it is reaped.
  void stop(ipc::Deadline deadline) noexcept;

 private:
  Child(std::string name, pid_t pid) : name_(std::move(name)), pid_(pid) {}

  // The wait status once it has ended.
  std::optional<int> reap() noexcept;

  std::string name_;
  pid_t pid_ = -1;
};

// Runs a program to its end and returns what it wrote to stdout; an exit code other than 0 is an error that holds the
// end of its stderr.
Result<std::string> run_program(const std::string& name, const std::vector<std::string>& argv, ipc::Deadline deadline,
                                int network = -1);

}  // namespace railhead::bench
