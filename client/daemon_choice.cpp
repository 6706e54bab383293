#include "client/daemon_choice.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace railhead::client {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

ipc::UniqueFd connect_to(const std::string& path, std::chrono::milliseconds limit) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return {};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  // The time limit of a connect() that finds the daemon's queue full.
  const timeval time{limit.count() / 1000, limit.count() % 1000 * 1000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  int done = 0;
  do {
    done = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  } while (done != 0 && errno == EINTR);
  if (done != 0) return {};
  return fd;
}

bool listens(const std::string& path) {
  // A full queue is one of a daemon.
  return connect_to(path, std::chrono::milliseconds(1)) || errno == EAGAIN;
}

std::string job_label(const char* wanted) {
  if (wanted != nullptr) return wanted;
  const std::string own = environment("RAILHEAD_JOB");
  return own.empty() ? environment("SLURM_JOB_ID") : own;
}

Result<std::string> choose_daemon(const std::string& wanted, const std::string& job, ipc::Deadline deadline) {
  std::string choice = wanted.empty() ? environment("RAILHEAD_DAEMON") : wanted;
  if (choice.empty()) choice = "auto";
  if (choice == "private") return ensure_private_daemon(job, deadline);
  if (choice == "auto") {
    if (listens(kSystemSocket)) return std::string(kSystemSocket);
    return ensure_private_daemon(job, deadline);
  }
  const std::string path = choice == "system" ? kSystemSocket : choice;
  if (path.find('/') == std::string::npos) {
    return fail(Code::invalid_argument, "daemon '" + choice + "': use auto, system, private or the path of a socket");
  }
  if (!listens(path)) {
    return fail(Code::unavailable, "no daemon listens on " + path + " (" + std::strerror(errno) +
                                       "); start epd, or set RAILHEAD_DAEMON=private");
  }
  return path;
}

}  // namespace railhead::client
