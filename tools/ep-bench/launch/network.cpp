#include "tools/ep-bench/launch/network.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tools/ep-bench/launch/child.hpp"

namespace railhead::bench {
namespace {

constexpr std::uint32_t kMostNodes = 250;  // host parts of the /24 below
constexpr const char* kDevice = "rail0";

Result<ipc::UniqueFd> own_space() {
  ipc::UniqueFd space(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!space) return fail(system_status("open /proc/thread-self/ns/net", errno));
  return space;
}

// The launcher steps into a new namespace, keeps a descriptor of it and steps back.
Result<ipc::UniqueFd> new_space() {
  auto home = own_space();
  if (!home) return home;
  if (unshare(CLONE_NEWNET) != 0) return fail(system_status("make a network namespace", errno));
  auto made = own_space();
  if (setns(home->get(), CLONE_NEWNET) != 0) return fail(system_status("return to the own network namespace", errno));
  return made;
}

// How `ip` names a namespace that has no name.
std::string path_of(const ipc::UniqueFd& space) {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(space.get());
}

std::string address_of(std::size_t node) {
  return "10.77.2." + std::to_string(node + 1);
}

// Runs `ip` several times in one namespace; the first failure ends it.
class Ip {
 public:
  explicit Ip(const ipc::UniqueFd& space) : space_(space) {}

  Ip& operator()(std::vector<std::string> words) {
    if (!status_.ok()) return *this;
    words.insert(words.begin(), "ip");
    const auto done = run_program("ip " + words[1] + " " + words[2], words,
                                  ipc::Deadline::after(std::chrono::seconds(10)), space_.get());
    if (!done) status_ = done.error();
    return *this;
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const ipc::UniqueFd& space_;
  Status status_;
};

Status start_node(const NodeNetwork& node) {
  Ip ip(node.space);
  ip({"link", "set", "lo", "up"})({"address", "add", node.address + "/24", "dev", kDevice});
  return ip({"link", "set", kDevice, "up"}).status();
}

Status join_by_veth(const std::vector<NodeNetwork>& nodes) {
  return Ip(nodes[0].space)(
             {"link", "add", kDevice, "type", "veth", "peer", "name", kDevice, "netns", path_of(nodes[1].space)})
      .status();
}

Status join_by_bridge(Network& network) {
  auto hub = new_space();
  if (!hub) return hub.error();
  network.hub = std::move(*hub);
  Ip ip(network.hub);
  ip({"link", "add", "hub", "type", "bridge"})({"link", "set", "hub", "up"});
  for (std::size_t node = 0; node < network.nodes.size(); ++node) {
    const std::string port = "node" + std::to_string(node);
    ip({"link", "add", port, "type", "veth", "peer", "name", kDevice, "netns", path_of(network.nodes[node].space)});
    ip({"link", "set", port, "master", "hub"})({"link", "set", port, "up"});
  }
  return ip.status();
}

Result<Network> make_namespaces(std::uint32_t nodes) {
  if (nodes > kMostNodes) {
    return fail(Code::limit_exceeded,
                std::to_string(nodes) + " nodes: at most " + std::to_string(kMostNodes) + " network namespaces");
  }
  Network out;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    auto space = new_space();
    if (!space) return fail(space.error());
    out.nodes.push_back({address_of(node), std::move(*space), {}});
  }
  if (Status joined = nodes == 2 ? join_by_veth(out.nodes) : join_by_bridge(out); !joined.ok()) return fail(joined);
  for (const NodeNetwork& node : out.nodes) {
    if (Status started = start_node(node); !started.ok()) return fail(started);
  }
  out.form = nodes > 2 ? "namespaces joined by a bridge" : "namespaces joined by veth";
  return out;
}

// An equal share of this process's cores for every node, if each can have one.
void share_cores(std::vector<NodeNetwork>& nodes) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (nodes.size() < 2 || sched_getaffinity(0, sizeof(mine), &mine) != 0) return;
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mine)) cores.push_back(core);
  }
  const std::size_t share = cores.size() / nodes.size();
  for (std::size_t i = 0; i < share * nodes.size(); ++i) nodes[i / share].cores.push_back(cores[i]);
}

}  // namespace

Result<Network> make_network(NetKind kind, std::uint32_t nodes) {
  std::string why;
  if (nodes > 1 && kind != NetKind::loopback) {
    auto made = make_namespaces(nodes);
    if (made) share_cores(made->nodes);
    if (made || kind == NetKind::namespaces) return made;
    why = " (no namespaces: " + made.error().message() + ")";
  }
  Network out;
  out.nodes.resize(nodes);
  out.form = nodes == 1 ? "shared memory" : "loopback" + why;
  return out;
}

}  // namespace railhead::bench
