// What operators see, as JSON. Keys are stable: scripts and dashboards read them (docs/control-plane.md).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "daemon/control/drain.hpp"
#include "daemon/control/sessions.hpp"
#include "daemon/control/turned_away.hpp"
#include "daemon/group/registry.hpp"
#include "daemon/mesh/mesh.hpp"

namespace railhead::daemon {

struct SnapshotInput {
  const config::Config& config;
  mesh::HostId host;
  std::string mesh_endpoint;
  std::chrono::steady_clock::time_point started;
  const SessionTable& sessions;
  const GroupRegistry& groups;
  std::vector<mesh::PeerInfo> mesh_peers;
  const std::vector<ProxyReport>& proxies;
  const TurnedAway& turned_away;
  std::string socket;
  std::optional<Drain> drain{};
  std::vector<std::string> troubles{};  // what has failed for good, but leaves the daemon alive
};

// Empty for an unknown `what`: status, why, sessions, groups, arenas, rings, peers.
std::string make_snapshot(const std::string& what, const SnapshotInput& in);

}  // namespace railhead::daemon
