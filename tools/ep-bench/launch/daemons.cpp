#include "tools/ep-bench/launch/daemons.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tools/ep-bench/launch/interrupt.hpp"

namespace railhead::bench {
namespace {

bool accepts_clients(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const ipc::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd && connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

Result<NodeDaemon> start(const std::string& epd, const TempDir& folder, const NodeNetwork& node,
                         const DaemonOptions& options, std::size_t number) {
  const std::string name = "node" + std::to_string(number);
  NodeDaemon out;
  out.socket = folder.file(name + ".sock");
  out.log = folder.file(name + ".log");
  std::vector<std::string> argv = {epd,
                                   "--config",
                                   "none",
                                   "--socket",
                                   out.socket,
                                   "--mesh.bind",
                                   "tcp://" + node.address + ":0",
                                   "--log.level",
                                   "warning",
                                   "--log.target",
                                   "stderr",
                                   "--drain_s",
                                   "1"};
  // Nobody but this run can reach a namespace that it made.
  if (node.space) argv.emplace_back("--mesh.insecure");
  if (!options.fault.empty()) argv.insert(argv.end(), {"--fabric.fault", options.fault});
  if (options.pin_proxies) argv.insert(argv.end(), {"--proxy.cpus", std::to_string(number)});
  SpawnOptions spawn;
  spawn.network = node.space.get();
  spawn.cores = node.cores;
  spawn.output = out.log;
  auto child = Child::spawn("epd of " + name, argv, spawn);
  if (!child) return fail(child.error());
  out.process = std::move(*child);
  return out;
}

Status wait_ready(NodeDaemon& daemon, ipc::Deadline deadline) {
  while (!accepts_clients(daemon.socket)) {
    if (const auto end = daemon.process.ended()) return {Code::unavailable, *end + end_of_log(daemon.log)};
    if (Status go = keep_waiting(deadline, "epd to accept clients"); !go.ok()) {
      return {go.code(), go.message() + end_of_log(daemon.log)};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return {};
}

}  // namespace

Result<std::string> own_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail(system_status("read /proc/self/exe", error.value()));
  return path.string();
}

Result<std::string> program_beside(const std::string& name) {
  auto self = own_path();
  if (!self) return self;
  const auto path = std::filesystem::path(*self).parent_path() / name;
  if (access(path.c_str(), X_OK) == 0) return path.string();
  return fail(Code::unavailable, name + " is not in " + path.parent_path().string() + ", where this program is");
}

Result<std::vector<NodeDaemon>> start_daemons(const TempDir& folder, const Network& network,
                                              const DaemonOptions& options, ipc::Deadline deadline) {
  const auto epd = program_beside("epd");
  if (!epd) return fail(epd.error());
  std::vector<NodeDaemon> out;
  for (const NodeNetwork& node : network.nodes) {
    auto daemon = start(*epd, folder, node, options, out.size());
    if (!daemon) return fail(daemon.error());
    out.push_back(std::move(*daemon));
  }
  for (NodeDaemon& daemon : out) {
    if (Status ready = wait_ready(daemon, deadline); !ready.ok()) return fail(ready);
  }
  return out;
}

std::string end_of_log(const std::string& path) {
  constexpr std::size_t kMost = 1500;
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (text.empty()) return {};
  if (text.size() > kMost) text.erase(0, text.size() - kMost);
  return "\n  its log ends with:\n" + text;
}

}  // namespace railhead::bench
