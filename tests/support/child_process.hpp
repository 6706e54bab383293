// A program as a child of the test: lines in, lines out, killed and reaped with its owner. Every wait has a deadline.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/fd.hpp"

namespace railhead::test {

using Milliseconds = std::chrono::milliseconds;

// CLOCK_MONOTONIC, the same in every process of this host.
std::uint64_t now_ns();

class ChildProcess {
 public:
  // `environment`: "NAME=value", in place of the test's own value; standard error goes to `log`. Dies with the thread
  // that made it. Throws std::runtime_error.
  ChildProcess(std::vector<std::string> words, const std::vector<std::string>& environment, const std::string& log);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  void write_line(const std::string& line) const;
  // Empty optional: the deadline passed. Throws when the output ended.
  std::optional<std::string> read_line(Milliseconds limit);
  // Its end: exit status, or 1000 + signal; nothing when the deadline passed first.
  std::optional<int> wait(Milliseconds limit);
  // No more input for it.
  void close_input() { in_.reset(); }

 private:
  pid_t pid_ = -1;  // -1: waited for
  std::optional<int> end_;
  ipc::UniqueFd pidfd_;
  ipc::UniqueFd in_;
  ipc::UniqueFd out_;
  std::string buffered_;
};

}  // namespace railhead::test
