#include "daemon/control/listener.hpp"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

namespace railhead::daemon {
namespace {

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fail(Code::invalid_argument, "socket path " + path + " has " + std::to_string(path.size()) +
                                            " bytes, at most " + std::to_string(sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<gid_t> group_id(const std::string& name) {
  std::vector<char> buffer(16384);
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return fail(Code::invalid_argument, "socket_group '" + name + "' does not exist on this host");
  }
  return found->gr_gid;
}

Result<void> clear_stale(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) return fail(Code::invalid_argument, path + " exists and is not a socket");
  const ipc::UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return fail(Code::unavailable, "another daemon listens on " + path + "; stop it, or set socket to another path");
  }
  if (::unlink(path.c_str()) != 0) return fail(system_status("unlink " + path, errno));
  return {};
}

Result<void> set_access(const std::string& path, const config::Config& config) {
  if (!config.socket_group.empty()) {
    auto gid = group_id(config.socket_group);
    if (!gid) return fail(gid.error());
    if (::lchown(path.c_str(), static_cast<uid_t>(-1), *gid) != 0) {
      return fail(system_status("chown of " + path + " to group " + config.socket_group, errno));
    }
  }
  if (::chmod(path.c_str(), config.socket_mode.bits) != 0) return fail(system_status("chmod " + path, errno));
  return {};
}

// A name of its own beside the socket, seldom longer.
std::string name_beside(const std::string& path) {
  char name[9];
  std::snprintf(name, sizeof(name), ".%07x", std::random_device{}() & 0xfffffffU);
  return (std::filesystem::path(path).parent_path() / name).string();
}

struct RemoveFile {
  const std::string& path;
  ~RemoveFile() { ::unlink(path.c_str()); }
};

// The socket has its name only once it listens with its group and mode: who finds it may believe its answer. A hard
// link gives the name, since that fails where another daemon was quicker.
Result<ipc::UniqueFd> bind_socket(const config::Config& config) {
  auto address = address_of(config.socket);
  if (!address) return fail(address.error());
  if (auto clear = clear_stale(config.socket, *address); !clear) return fail(clear.error());
  const std::string made = name_beside(config.socket);
  auto made_address = address_of(made);
  if (!made_address) return fail(made_address.error());
  ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(system_status("socket", errno));
  // The mode of the socket's inode at bind() is the mode of the file: closed until group and mode are set.
  if (::fchmod(fd.get(), 0600) != 0) return fail(system_status("chmod of the socket", errno));
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*made_address), sizeof(*made_address)) != 0) {
    return fail(system_status("bind a socket in the folder of " + config.socket, errno));
  }
  const RemoveFile made_name{made};
  if (auto set = set_access(made, config); !set) return fail(set.error());
  if (::listen(fd.get(), SOMAXCONN) != 0) return fail(system_status("listen on " + config.socket, errno));
  if (::link(made.c_str(), config.socket.c_str()) != 0) return fail(system_status("bind " + config.socket, errno));
  return fd;
}

}  // namespace

Result<ipc::UniqueFd> listen_socket(const config::Config& config) {
  const int passed = ::sd_listen_fds(0);
  if (passed > 1)
    return fail(Code::invalid_argument, "systemd passed " + std::to_string(passed) + " sockets, epd takes one");
  if (passed == 1) return ipc::UniqueFd(SD_LISTEN_FDS_START);
  return bind_socket(config);
}

Status check_socket(const config::Config& config) {
  if (config.socket.empty()) return {Code::invalid_argument, "socket is '': it needs a path"};
  for (const std::string& path : {config.socket, name_beside(config.socket)}) {
    if (const auto address = address_of(path); !address) return address.error();
  }
  if (config.socket_group.empty()) return {};
  const auto gid = group_id(config.socket_group);
  return gid ? Status() : gid.error();
}

Result<std::string> move_socket_aside(const std::string& path) {
  const std::filesystem::path old(path);
  const std::string name = old.stem().string() + ".draining-" + std::to_string(::getpid()) + old.extension().string();
  const std::string aside = (old.parent_path() / name).string();
  if (::rename(path.c_str(), aside.c_str()) != 0) return fail(system_status("rename " + path + " to " + aside, errno));
  return aside;
}

}  // namespace railhead::daemon
