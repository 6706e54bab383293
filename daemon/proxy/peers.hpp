// The daemons this proxy is connected to: one connection each, shared by all groups that span it. The daemon with the
// lower host id dials, the other one announces a one-time token. One thread.
//
// By daemon, not by host: the end of one that was killed may be told while a group with the one in its place is made.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/proxy/credit_table.hpp"
#include "daemon/proxy/group.hpp"

namespace railhead::daemon::rail {

struct Peer {
  enum class State : std::uint8_t { down, connecting, up };

  Peer(HostId id, CreditTable table, std::uint32_t rings)
      : host(id), credits(std::move(table)), numbers(rings), inbound(rings), outbound(rings) {}

  HostId host;
  State state = State::down;
  fabric::PeerId connection{};
  Token token{};  // of the connection, while it is being made
  Status reason;  // why it is down
  CreditTable credits;
  RingNumbers numbers;
  std::vector<Ring*> inbound;       // by our ring number
  std::vector<TxRing*> outbound;    // by the peer's ring number: whom its credits concern
  std::deque<fabric::Write> queue;  // the fabric's queue was full; in order
  std::vector<Path*> paths;         // of every group that spans this daemon
  PeerReport counts;                // the counters only
};

// The first bytes of a host id, for messages.
std::string short_name(const HostId& host);

class Peers {
 public:
  Peers(fabric::Fabric& fabric, const HostId& own, std::uint32_t rings_per_peer)
      : fabric_(fabric), own_(own), rings_per_peer_(rings_per_peer) {}

  // The entry of a daemon, made when it is new.
  Result<Peer*> enter(const DaemonId& daemon);
  // The token to send with an offer; all zero where the peer needs none: it accepts itself, or the connection is up.
  Result<Token> announce(Peer& peer);
  // Both offers are here: the path is connected, now or when the connection comes up, or it fails.
  void connect(Path& path, const WireOffer& offer);

  void on_up(fabric::PeerId connection);
  void on_down(fabric::PeerId connection, const Status& reason);
  // Ends the connection from our side.
  void close(Peer& peer, const Status& reason);
  void close(const DaemonId& daemon, const Status& reason);
  void close_all();
  // Forgets daemons that no group spans and that are not connected.
  void forget_unused();

  [[nodiscard]] Peer* find(fabric::PeerId connection) const;
  [[nodiscard]] const std::map<DaemonId, std::unique_ptr<Peer>>& all() const noexcept { return peers_; }

 private:
  [[nodiscard]] bool dials(const Peer& peer) const { return own_ < peer.host; }
  Result<void> dial(Peer& peer, const WireOffer& offer);
  void connecting(Peer& peer, fabric::PeerId connection);
  void end(Peer& peer, const Status& reason);

  fabric::Fabric& fabric_;
  HostId own_;
  std::uint32_t rings_per_peer_;
  std::map<DaemonId, std::unique_ptr<Peer>> peers_;
  std::map<fabric::PeerId, Peer*> by_connection_;
};

}  // namespace railhead::daemon::rail
