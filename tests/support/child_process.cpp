#include "tests/support/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "ipc/deadline.hpp"

namespace railhead::test {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> merged(const std::vector<std::string>& own) {
  std::vector<std::string> out = own;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    const std::string name = entry.substr(0, entry.find('=') + 1);
    bool replaced = false;
    for (const std::string& o : own) replaced |= o.rfind(name, 0) == 0;
    if (!replaced) out.push_back(entry);
  }
  return out;
}

bool readable(int fd, ipc::Deadline deadline) {
  using namespace std::chrono_literals;
  for (;;) {
    pollfd ready{fd, POLLIN, 0};
    const int got = ::poll(&ready, 1, static_cast<int>(deadline.remaining(1000ms).count()));
    if (got > 0) return true;
    if (deadline.expired()) return false;
  }
}

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

ChildProcess::ChildProcess(std::vector<std::string> words, const std::vector<std::string>& environment,
                           const std::string& log) {
  int in[2];
  int out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  const ipc::UniqueFd in_end(in[0]);
  const ipc::UniqueFd out_end(out[1]);
  in_.reset(in[1]);
  out_.reset(out[0]);
  const ipc::UniqueFd err(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  std::vector<std::string> env = merged(environment);
  const auto argv = pointers(words);
  const auto envp = pointers(env);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(in_end.get(), STDIN_FILENO);
    ::dup2(out_end.get(), STDOUT_FILENO);
    ::dup2(err.get(), STDERR_FILENO);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  if (pid_ < 0) throw std::runtime_error("fork failed");
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::kill(pid_, SIGCONT);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void ChildProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void ChildProcess::write_line(const std::string& line) const {
  const std::string text = line + "\n";
  // A child that is gone shows when its answer is read.
  [[maybe_unused]] const ssize_t written = ::write(in_.get(), text.data(), text.size());
}

std::optional<std::string> ChildProcess::read_line(Milliseconds limit) {
  const auto deadline = ipc::Deadline::after(limit);
  for (;;) {
    if (const std::size_t end = buffered_.find('\n'); end != std::string::npos) {
      std::string line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return line;
    }
    if (!readable(out_.get(), deadline)) return std::nullopt;
    char chunk[4096];
    const ssize_t got = ::read(out_.get(), chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw std::runtime_error("process " + std::to_string(pid_) + " ended its output");
    buffered_.append(chunk, static_cast<std::size_t>(got));
  }
}

std::optional<int> ChildProcess::wait(Milliseconds limit) {
  if (end_) return end_;
  if (!readable(pidfd_.get(), ipc::Deadline::after(limit))) return std::nullopt;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  end_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  return end_;
}

}  // namespace railhead::test
