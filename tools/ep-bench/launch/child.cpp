#include "tools/ep-bench/launch/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include "ipc/fd.hpp"
#include "tools/ep-bench/launch/interrupt.hpp"

namespace railhead::bench {
namespace {

constexpr int kSpawnFailed = 127;
constexpr int kFirstFreeFd = 64;  // descriptors are moved up here before they take their final numbers

[[noreturn]] void complain(const char* what) {
  // Between fork and exec only async-signal-safe calls; the name of the step is all that can be said.
  const char* const parts[] = {"ep-bench: cannot start a child: ", what, "\n"};
  for (const char* part : parts) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, part, std::strlen(part));
  }
  _exit(kSpawnFailed);
}

void redirect(const std::vector<std::pair<int, int>>& moves) {
  int up[16];
  std::size_t count = 0;
  for (const auto& [from, to] : moves) {
    if (count == std::size(up)) complain("too many descriptors");
    up[count] = fcntl(from, F_DUPFD_CLOEXEC, kFirstFreeFd);
    if (up[count++] < 0) complain("dup");
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (dup2(up[i], moves[i].second) < 0) complain("dup2");
  }
}

bool run_on(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

[[noreturn]] void become(char* const* argv, const SpawnOptions& options, const std::vector<std::pair<int, int>>& moves,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kSpawnFailed);  // the launcher went between fork and prctl
  setpgid(0, 0);
  if (options.network >= 0 && setns(options.network, CLONE_NEWNET) != 0) complain("enter the network namespace");
  if (!options.cores.empty() && !run_on(options.cores)) complain("bind to the node's cores");
  redirect(moves);
  execvp(argv[0], argv);
  complain(argv[0]);
}

void pause_ms(long milliseconds) {
  const timespec pause{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

Result<Child> Child::spawn(std::string name, const std::vector<std::string>& argv, const SpawnOptions& options) {
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  auto moves = options.pass;
  ipc::UniqueFd output;
  if (!options.output.empty()) {
    output.reset(open(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!output) return fail(system_status("open " + options.output, errno));
    moves.emplace_back(output.get(), STDOUT_FILENO);
    moves.emplace_back(output.get(), STDERR_FILENO);
  }
  if (options.stdout_fd >= 0) moves.emplace_back(options.stdout_fd, STDOUT_FILENO);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail(system_status("fork for " + name, errno));
  if (pid == 0) become(words.data(), options, moves, parent);
  return Child(std::move(name), pid);
}

Child::~Child() {
  if (!running()) return;
  send_signal(SIGKILL);
  stop(ipc::Deadline::never());
}

void Child::send_signal(int number) const noexcept {
  if (running()) kill(pid_, number);
}

std::optional<int> Child::reap() noexcept {
  int status = 0;
  if (!running() || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return status;
}

std::optional<std::string> Child::ended() {
  const auto status = reap();
  if (!status) return std::nullopt;
  if (WIFSIGNALED(*status)) return name_ + " was killed by signal " + std::to_string(WTERMSIG(*status));
  return name_ + " ended with exit code " + std::to_string(WEXITSTATUS(*status));
}

Result<int> Child::wait(ipc::Deadline deadline) {
  for (;;) {
    if (const auto status = reap()) return WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
    if (!running()) return fail(Code::invalid_usage, name_ + " was reaped before");
    if (Status go = keep_waiting(deadline, name_.c_str()); !go.ok()) return fail(go);
    pause_ms(1);
  }
}

void Child::stop(ipc::Deadline deadline) noexcept {
  send_signal(SIGTERM);
  while (running() && !reap()) {
    if (deadline.expired()) send_signal(SIGKILL);
    pause_ms(1);
  }
}

namespace {

// A program that is stopped early gets time to remove what it made. A shell looks at signals only when the command that
// it waits for has ended, so that one is told as well.
void end_early(Child& child) {
  constexpr std::chrono::seconds kTime{5};
  std::ifstream file("/proc/" + std::to_string(child.pid()) + "/task/" + std::to_string(child.pid()) + "/children");
  for (pid_t below = 0; file >> below;) kill(below, SIGTERM);
  child.stop(ipc::Deadline::after(kTime));
}

}  // namespace

Result<std::string> run_program(const std::string& name, const std::vector<std::string>& argv, ipc::Deadline deadline,
                                int network) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return fail(system_status("pipe", errno));
  const ipc::UniqueFd from(out[0]);
  ipc::UniqueFd to(out[1]);
  SpawnOptions options{
      .network = network, .cores = {}, .pass = {{to.get(), STDERR_FILENO}}, .output = {}, .stdout_fd = to.get()};
  auto child = Child::spawn(name, argv, options);
  if (!child) return fail(child.error());
  to.reset();
  std::string text;
  for (char block[4096];;) {
    if (Status go = keep_waiting(deadline, name.c_str()); !go.ok()) {
      end_early(*child);
      return fail(go);
    }
    pollfd ready{from.get(), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(deadline.remaining(std::chrono::milliseconds(200)).count())) <= 0) continue;
    const ssize_t got = read(from.get(), block, sizeof(block));
    if (got == 0) break;
    if (got > 0) text.append(block, static_cast<std::size_t>(got));
  }
  const auto code = child->wait(deadline);
  if (!code) return fail(code.error());
  if (*code == 0) return text;
  constexpr std::size_t kTail = 500;
  const std::string tail = text.size() > kTail ? "... " + text.substr(text.size() - kTail) : text;
  return fail(Code::system, name + " ended with exit code " + std::to_string(*code) + ": " + tail);
}

}  // namespace railhead::bench
