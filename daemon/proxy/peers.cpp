#include "daemon/proxy/peers.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <utility>

#include "daemon/proxy/enrolment.hpp"

namespace railhead::daemon::rail {
namespace {

// Offers travel over the mesh within milliseconds; this only bounds how long a lost daemon is waited for.
constexpr std::chrono::seconds kConnectTime{20};

Result<Token> random_token() {
  Token token;
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    return fail(system_status("drawing a connection token", errno));
  }
  return token;
}

}  // namespace

std::string short_name(const HostId& host) {
  constexpr std::array<char, 16> kDigits{'0', '1', '2', '3', '4', '5', '6', '7',
                                         '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::string text;
  for (std::size_t i = 0; i < 4; ++i) {
    text += kDigits[host[i] >> 4];
    text += kDigits[host[i] & 15];
  }
  return text;
}

Result<Peer*> Peers::enter(const DaemonId& daemon) {
  if (daemon.host == own_) {
    return fail(Code::internal, "two domains of one group are on host " + short_name(daemon.host));
  }
  if (const auto found = peers_.find(daemon); found != peers_.end()) return found->second.get();
  auto credits = CreditTable::create(fabric_, rings_per_peer_);
  if (!credits) return fail(credits.error());
  auto peer = std::make_unique<Peer>(daemon.host, std::move(*credits), rings_per_peer_);
  return peers_.emplace(daemon, std::move(peer)).first->second.get();
}

Result<Token> Peers::announce(Peer& peer) {
  if (dials(peer) || peer.state == Peer::State::up) return Token{};
  if (peer.state == Peer::State::connecting) return peer.token;
  const auto token = random_token();
  if (!token) return fail(token.error());
  const auto connection = fabric_.expect_peer(*token, std::chrono::steady_clock::now() + kConnectTime);
  if (!connection) return fail(connection.error());
  peer.token = *token;
  connecting(peer, *connection);
  return *token;
}

void Peers::connecting(Peer& peer, fabric::PeerId connection) {
  peer.state = Peer::State::connecting;
  peer.connection = connection;
  by_connection_[connection] = &peer;
}

Result<void> Peers::dial(Peer& peer, const WireOffer& offer) {
  if (offer.token == Token{}) {
    return fail(Code::peer_lost, "the daemon of host " + short_name(peer.host) +
                                     " still holds an earlier connection that is gone here: make the group again");
  }
  const auto connection =
      fabric_.open_peer(offer.fabric_address, offer.token, std::chrono::steady_clock::now() + kConnectTime);
  if (!connection) return fail(connection.error());
  connecting(peer, *connection);
  return {};
}

void Peers::connect(Path& path, const WireOffer& offer) {
  Peer& peer = *path.peer;
  path.state = Path::State::offered;
  if (peer.state == Peer::State::up) {
    path_up(path);
  } else if (peer.state == Peer::State::down) {
    const Result<void> dialled = dials(peer) ? dial(peer, offer) : fail(peer.reason);
    if (!dialled) path_down(path, dialled.error());
  }
}

void Peers::on_up(fabric::PeerId connection) {
  Peer* const peer = find(connection);
  if (peer == nullptr) return;
  peer->state = Peer::State::up;
  for (Path* const path : peer->paths) {
    if (path->state == Path::State::offered) path_up(*path);
  }
}

void Peers::on_down(fabric::PeerId connection, const Status& reason) {
  if (Peer* const peer = find(connection)) end(*peer, reason);
}

void Peers::close(Peer& peer, const Status& reason) {
  if (peer.state == Peer::State::down) return;
  fabric_.close_peer(peer.connection);
  end(peer, reason);
}

void Peers::close(const DaemonId& daemon, const Status& reason) {
  if (const auto found = peers_.find(daemon); found != peers_.end()) close(*found->second, reason);
}

void Peers::close_all() {
  for (const auto& [daemon, peer] : peers_) {
    if (peer->state != Peer::State::down) fabric_.close_peer(peer->connection);
  }
}

void Peers::end(Peer& peer, const Status& reason) {
  by_connection_.erase(peer.connection);
  peer.state = Peer::State::down;
  peer.reason = Status(reason.code(),
                       "the path to the daemon of host " + short_name(peer.host) + " is gone: " + reason.message());
  peer.queue.clear();
  for (Path* const path : peer.paths) path_down(*path, peer.reason);
}

void Peers::forget_unused() {
  std::erase_if(peers_,
                [](const auto& item) { return item.second->paths.empty() && item.second->state == Peer::State::down; });
}

Peer* Peers::find(fabric::PeerId connection) const {
  const auto found = by_connection_.find(connection);
  return found == by_connection_.end() ? nullptr : found->second;
}

}  // namespace railhead::daemon::rail
