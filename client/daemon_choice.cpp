#include "client/daemon_choice.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "ipc/fd.hpp"

namespace railhead::client {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

bool listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
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
