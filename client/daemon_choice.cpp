#include "client/daemon_choice.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client/unreachable.hpp"

namespace railhead::client {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Status reach(const std::string& path) {
  return listens(path) ? Status() : why_unreachable(path, errno);
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

Result<std::string> choose_daemon(const std::string& wanted, const std::string& job, ipc::Deadline deadline,
                                  const std::string& system_socket) {
  std::string choice = wanted.empty() ? environment("RAILHEAD_DAEMON") : wanted;
  if (choice.empty()) choice = "auto";
  if (choice == "private") return ensure_private_daemon(job, deadline);
  const bool automatic = choice == "auto";
  const std::string path = automatic || choice == "system" ? system_socket : choice;
  if (path.find('/') == std::string::npos) {
    return fail(Code::invalid_argument, "daemon '" + choice + "': use auto, system, private or the path of a socket");
  }
  Status reached = reach(path);
  if (reached.ok()) return path;
  // A private one only where there is no other: it reaches no other host, and nobody would be told why.
  const bool none_there = reached.code() == Code::unavailable || reached.code() == Code::invalid_argument;
  if (automatic && none_there) return ensure_private_daemon(job, deadline);
  return fail(std::move(reached));
}

}  // namespace railhead::client
