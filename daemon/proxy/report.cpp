#include "daemon/proxy/engine.hpp"

namespace railhead::daemon::rail {
namespace {

void add_rings(const Group& group, const Rail& rail, std::vector<RingReport>& out) {
  const auto add = [&](const ipc::RingEnd& end, bool tx, bool dispatch, std::uint64_t head, std::uint64_t tail) {
    out.push_back({.group = group.key(),
                   .rank = rail.rank,
                   .tx = tx,
                   .dispatch = dispatch,
                   .home = end.home,
                   .channel = end.channel,
                   .peer = end.peer,
                   .head = head,
                   .tail = tail});
  };
  const auto add_pair = [&](const ipc::RingEnd& end, bool home, std::uint32_t tx, std::uint32_t rx) {
    add(end, true, home, rail.tx[tx].posted, rail.tx[tx].granted);
    add(end, false, !home, rail.rx[rx].window.prefix(), rail.rx[rx].consumed);
  };
  const auto& home = rail.rings.as_home();
  const auto& forwarder = rail.rings.as_forwarder();
  for (std::uint32_t i = 0; i < home.size(); ++i) {
    add_pair(home[i], true, rail.rings.tx_dispatch(i), rail.rings.rx_combine(i));
  }
  for (std::uint32_t i = 0; i < forwarder.size(); ++i) {
    add_pair(forwarder[i], false, rail.rings.tx_combine(i), rail.rings.rx_dispatch(i));
  }
}

const char* name_of(Peer::State state) {
  switch (state) {
    case Peer::State::down: return "down";
    case Peer::State::connecting: return "connecting";
    case Peer::State::up: return "up";
  }
  return "unknown";
}

}  // namespace

ProxyReport Engine::report() const {
  ProxyReport out;
  const fabric::FabricInfo info = fabric_->describe();
  out.fabric = info.provider + " " + info.endpoint + ", " + info.domain + ", " + info.address;
  if (!info.faults.empty()) {
    out.fabric += ", injected faults: " + info.faults;
    out.injected_faults = info.injected;
  }
  for (const auto& group : groups_) {
    for (const Rail& rail : group->rails) add_rings(*group, rail, out.rings);
  }
  for (const auto& [daemon, peer] : peers_.all()) {
    PeerReport& entry = out.peers.emplace_back(peer->counts);
    entry.daemon = daemon;
    entry.state = name_of(peer->state);
    if (peer->state == Peer::State::down) entry.detail = peer->reason.message();
  }
  return out;
}

}  // namespace railhead::daemon::rail
