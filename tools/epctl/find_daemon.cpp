#include "tools/epctl/find_daemon.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "ipc/fd.hpp"

namespace railhead::epctl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSystemSocket = "/run/epd/epd.sock";

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

// Non-blocking: a daemon whose backlog is full (EAGAIN) listens, and connect() would wait for it.
int knock(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return 0;
  return errno == EAGAIN ? 0 : errno;
}

namespace {

// Where the library puts the sockets of private daemons.
std::string private_directory() {
  const std::string runtime = environment("XDG_RUNTIME_DIR");
  return (runtime.empty() ? std::string("/tmp") : runtime) + "/railhead-" + std::to_string(::geteuid());
}

std::vector<std::string> private_daemons(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".sock" && knock(entry.path()) == 0) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

Result<std::string> find_daemon(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const std::string choice = environment("RAILHEAD_DAEMON");
  if (choice.find('/') != std::string::npos) return choice;
  if (choice == "system") return std::string(kSystemSocket);
  int why = 0;
  if (choice != "private") {
    why = knock(kSystemSocket);
    if (why == 0) return std::string(kSystemSocket);
  }
  const std::string directory = private_directory();
  const auto found = private_daemons(directory);
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    const std::string system = why == 0 ? "" : std::string(kSystemSocket) + ": " + std::strerror(why) + "; ";
    return fail(Code::unavailable, "no daemon: " + system + "no private daemon of uid " + std::to_string(::geteuid()) +
                                       " listens in " + directory +
                                       "; start epd, or name its socket with --socket or RAILHEAD_DAEMON");
  }
  std::string list;
  for (const std::string& path : found) list += (list.empty() ? " " : ", ") + path;
  return fail(Code::invalid_argument,
              std::to_string(found.size()) + " private daemons listen, choose one with --socket:" + list);
}

}  // namespace railhead::epctl
