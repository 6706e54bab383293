// One network per node: loopback, or a network namespace per node joined by a veth pair (two nodes) or a bridge (more).
// The namespaces have no names: they end with the last process in them, whatever happens to the launcher.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ipc/fd.hpp"
#include "ipc/status.hpp"

namespace railhead::bench {

enum class NetKind : std::uint8_t { automatic, loopback, namespaces };

struct NodeNetwork {
  std::string address = "127.0.0.1";
  ipc::UniqueFd space;  // empty: the launcher's own network
  // Where its processes run; empty: anywhere. Hosts do not share cores, so nodes do not where there are enough.
  std::vector<int> cores;
};

struct Network {
  std::vector<NodeNetwork> nodes;
  ipc::UniqueFd hub;  // the bridge's namespace
  std::string form;  // "shared memory" of one node, "loopback", "namespaces joined by veth", ...; with the reason where
                     // automatic fell back
};

// One node needs no network: loopback. More: automatic takes namespaces where this user can make them, else loopback.
// Errors: permission or unavailable where namespaces were asked for and cannot be made.
Result<Network> make_network(NetKind kind, std::uint32_t nodes);

}  // namespace railhead::bench
