// Runs a program and keeps what it says. Children are always reaped.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "ipc/deadline.hpp"
#include "ipc/fd.hpp"

namespace railhead::epctl {

// A started program with both outputs on pipes. `environment` entries ("NAME=value") come before the test's own.
class Program {
 public:
  Program(std::vector<std::string> words, std::vector<std::string> environment = {}) {
    int out[2];
    int err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) std::abort();
    out_ = ipc::UniqueFd(out[0]);
    err_ = ipc::UniqueFd(err[0]);
    const ipc::UniqueFd out_end(out[1]);
    const ipc::UniqueFd err_end(err[1]);
    for (char** e = environ; *e != nullptr; ++e) environment.emplace_back(*e);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    if (posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(environment).data()) !=
        0)
      pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Program() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGCONT);
    ::kill(pid_, SIGKILL);
    (void)wait();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] bool started() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }

  // Standard error up to and with `text`; false when the program ended or 30 s passed before.
  bool await_error(const std::string& text) {
    return read_until(err_.get(), error_, [&] { return error_.find(text) != std::string::npos; });
  }
  // Both outputs to their end.
  void drain() {
    (void)read_until(out_.get(), output_, [] { return false; });
    (void)read_until(err_.get(), error_, [] { return false; });
  }
  // The status of waitpid().
  int wait() {
    int status = -1;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    return status;
  }
  [[nodiscard]] const std::string& output() const { return output_; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> out;
    for (std::string& word : words) out.push_back(word.data());
    out.push_back(nullptr);
    return out;
  }
  template <class Done>
  static bool read_until(int fd, std::string& text, Done done) {
    using namespace std::chrono_literals;
    const auto deadline = ipc::Deadline::after(30s);
    while (!done() && !deadline.expired()) {
      pollfd ready{fd, POLLIN, 0};
      if (::poll(&ready, 1, static_cast<int>(deadline.remaining(1000ms).count())) <= 0) continue;
      char buffer[4096];
      const ssize_t got = ::read(fd, buffer, sizeof(buffer));
      if (got <= 0) return done();
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return done();
  }

  pid_t pid_ = -1;
  ipc::UniqueFd out_;
  ipc::UniqueFd err_;
  std::string output_;
  std::string error_;
};

struct Ran {
  int exit_code = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
};

inline Ran run_epctl(std::vector<std::string> words, std::vector<std::string> environment = {}) {
  words.insert(words.begin(), EPCTL_PROGRAM);
  Program program(std::move(words), std::move(environment));
  if (!program.started()) return {};
  program.drain();
  const int status = program.wait();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, program.output(), program.error()};
}

}  // namespace railhead::epctl
