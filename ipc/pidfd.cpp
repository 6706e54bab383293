#include "ipc/pidfd.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>

namespace railhead::ipc {

Result<UniqueFd> open_own_pidfd() {
  // close-on-exec is pidfd_open's only behaviour.
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!fd) return fail(system_status("pidfd_open of this process (Linux 5.3 or later is needed)", errno));
  return fd;
}

Result<pid_t> pidfd_pid(int pidfd) {
  const std::string path = "/proc/self/fdinfo/" + std::to_string(pidfd);
  std::ifstream info(path);
  if (!info) return fail(Code::system, "cannot read " + path + ": is proc mounted and the descriptor open?");
  for (std::string key; info >> key;) {
    pid_t pid = 0;
    if (key == "Pid:" && info >> pid) return pid;
  }
  return fail(Code::protocol,
              "descriptor " + std::to_string(pidfd) + " is not a pidfd; pass the one of the client process");
}

Result<bool> pidfd_matches(int pidfd, pid_t kernel_pid) {
  const Result<pid_t> pid = pidfd_pid(pidfd);
  if (!pid) return fail(pid.error());
  return *pid == kernel_pid;
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
