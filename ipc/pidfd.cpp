#include "ipc/pidfd.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace railhead::ipc {
namespace {

constexpr pid_t kReaped = -1;

// The numbers of the process behind a pidfd: in the PID namespace that /proc counts for (0 = it is not seen from
// there), then in each one further in. At least one.
Result<std::vector<pid_t>> pids_behind(int pidfd) {
  const std::string path = "/proc/self/fdinfo/" + std::to_string(pidfd);
  std::ifstream info(path);
  if (!info) return fail(Code::system, "cannot read " + path + ": is proc mounted and the descriptor open?");
  std::vector<pid_t> pids;
  for (std::string line; std::getline(info, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    // A kernel without PID namespaces says Pid alone.
    if (key != "NSpid:" && !(key == "Pid:" && pids.empty())) continue;
    pids.assign(std::istream_iterator<pid_t>(words), {});
  }
  if (!pids.empty()) return pids;
  return fail(Code::protocol,
              "descriptor " + std::to_string(pidfd) + " is not a pidfd; pass the one of the client process");
}

}  // namespace

Result<UniqueFd> open_own_pidfd() {
  // close-on-exec is pidfd_open's only behaviour.
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!fd) return fail(system_status("pidfd_open of this process (Linux 5.3 or later is needed)", errno));
  return fd;
}

Result<bool> pidfd_matches(int pidfd, pid_t kernel_pid) {
  const auto own_fd = open_own_pidfd();
  if (!own_fd) return fail(own_fd.error());
  const auto own = pids_behind(own_fd->get());
  if (!own) return fail(own.error());
  const auto theirs = pids_behind(pidfd);
  if (!theirs) return fail(theirs.error());
  if (theirs->front() == kReaped) return false;
  // /proc may count for a namespace around ours (a daemon that got its own and no new /proc): ours is as many further
  // in as we have numbers there.
  const std::size_t ours = own->size() - 1;
  if (kernel_pid == 0) return ours > 0 || theirs->front() == 0;
  return ours < theirs->size() && (*theirs)[ours] == kernel_pid;
}

Result<bool> wait_exit(int pidfd, Deadline deadline) {
  for (;;) {
    pollfd entry{pidfd, POLLIN, 0};
    // A long poll is cut into pieces, because poll() counts in int.
    const auto piece = deadline.remaining(std::chrono::hours(1));
    const int count = ::poll(&entry, 1, static_cast<int>(piece.count()));
    if (count > 0 && (entry.revents & POLLNVAL) != 0) return fail(system_status("poll of a pidfd", EBADF));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return fail(system_status("poll of a pidfd", errno));
    if (deadline.expired()) return false;
  }
}

}  // namespace railhead::ipc
