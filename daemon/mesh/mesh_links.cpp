// The links that we dial: hello, welcome, data out, pings, loss.
#include <algorithm>

#include "daemon/mesh/mesh_loop.hpp"

namespace railhead::mesh {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr milliseconds kPingRetry{10};  // when the socket had no room

std::uint64_t stamp(Clock::time_point time) {
  return static_cast<std::uint64_t>(duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
}

Status refusal(const PeerAddress& peer, const Frame& frame) {
  const bool known = frame.number > 0 && frame.number <= static_cast<std::uint64_t>(Code::in_progress);
  return {known ? static_cast<Code>(frame.number) : Code::protocol,
          "peer daemon at " + peer.endpoint + " refused: " + frame.text};
}

}  // namespace

void MeshLoop::dial(Peer& peer) {
  if (peer.address.endpoint.empty()) peer.address.endpoint = peer.advertised;
  // A random route per link: what belongs to an earlier link can never be taken for this one's, and two daemons that
  // share a host id by mistake do not take over each other's connections.
  const auto nonce = random_host_id();
  if (!nonce) return lose(HostId(peer.address.host_id), nonce.error());
  std::string route = "R" + nonce->hex();  // ZeroMQ reserves routes that begin with a zero byte
  try {
    peer.link = std::make_unique<Link>(context_, config_, peer.address.endpoint, route);
    changed_ = true;
  } catch (const zmq::error_t& error) {
    const HostId id = peer.address.host_id;  // a copy: lose() frees the peer
    lose(id,
         {Code::system, "cannot dial peer daemon " + id.hex() + " at " + peer.address.endpoint + ": " + error.what()});
  }
}

void MeshLoop::serve_link(const HostId& id) {
  Peer* peer = find(id);
  if (peer == nullptr || !peer->link) return;
  // Events are taken first and acted on last: what arrived before a disconnection is read before it counts.
  std::vector<LinkEvent> events;
  while (auto event = peer->link->next_event()) events.push_back(*event);
  while ((peer = find(id)) != nullptr && peer->link) {
    const auto received = peer->link->receive();
    if (!received) break;
    on_link_frame(id, *received);
  }
  for (const LinkEvent& event : events) on_link_event(id, event);
}

void MeshLoop::on_link_event(const HostId& id, const LinkEvent& event) {
  Peer* peer = find(id);
  if (peer == nullptr || !peer->link) return;
  const bool dialing = peer->link->state == Link::State::dialing;
  switch (event.kind) {
    case LinkEvent::Kind::ready:
      if (dialing) send_hello(*peer);
      break;
    case LinkEvent::Kind::handshake_failed:
      // Tried again until the timeout: a daemon that is just starting or ending fails here too.
      peer->link->last_failure = "the security handshake failed (ZeroMQ event value " + std::to_string(event.detail) +
                                 "); both daemons need the same mesh.key_file, or both none";
      break;
    case LinkEvent::Kind::disconnected:
      if (!dialing) on_link_lost(id);
      break;
  }
}

void MeshLoop::on_link_lost(const HostId& id) {
  drain_router();  // its last messages may have come over its own link: they count
  Peer* peer = find(id);
  if (peer == nullptr || !peer->link) return;
  if (peer->link->state == Link::State::closing) {
    peer->link.reset();
    return;
  }
  lose(id, {Code::peer_lost, "the connection to peer daemon " + id.hex() + " at " + peer->address.endpoint +
                                 " was closed: the daemon or its host has ended"});
}

void MeshLoop::on_link_frame(const HostId& id, const Result<Frame>& received) {
  Peer& peer = *find(id);
  if (!received) return lose(id, received.error());
  peer.link->heard = Clock::now();
  switch (received->kind) {
    case FrameKind::welcome: return on_welcome(peer, *received);
    case FrameKind::refuse: return lose(id, refusal(peer.address, *received));
    case FrameKind::pong:
      peer.link->round_trip_us = std::max<std::uint64_t>(stamp(peer.link->heard) - received->number, 1);
      changed_ = true;
      return;
    case FrameKind::closed:
      if (peer.link->state == Link::State::closing) peer.link.reset();
      return;
    default:
      return lose(id,
                  {Code::protocol, "peer daemon " + id.hex() + " sent a frame of kind " +
                                       std::to_string(static_cast<int>(received->kind)) + " where only replies go"});
  }
}

void MeshLoop::on_welcome(Peer& peer, const Frame& welcome) {
  const HostId id = peer.address.host_id;
  if (welcome.version != kMeshProtocol) {
    return lose(id, {Code::version_mismatch, "peer daemon at " + peer.address.endpoint + " speaks mesh protocol " +
                                                 std::to_string(welcome.version) + ", this one " +
                                                 std::to_string(kMeshProtocol)});
  }
  if (welcome.from != id || (!peer.advertised.empty() && peer.advertised != welcome.text)) {
    return lose(id, {Code::mismatch, "the daemon at " + peer.address.endpoint + " is " + welcome.from.hex() + " at " +
                                         welcome.text + ", expected " + id.hex() +
                                         (peer.advertised.empty() ? "" : " at " + peer.advertised)});
  }
  peer.advertised = welcome.text;
  if (peer.link->state == Link::State::dialing) peer.link->state = Link::State::up;
  mark_up(peer);
}

void MeshLoop::send_hello(Peer& peer) {
  Frame hello = frame(FrameKind::hello, peer.address.host_id);
  hello.need = !peer.pending.empty() || retained_.contains(peer.address.host_id);
  hello.text = endpoint_;
  peer.link->told_need = hello.need;
  peer.link->last_failure.clear();
  peer.link->send(hello);  // an empty socket has room; a hello that is lost ends as an unanswered dial
}

void MeshLoop::send_ping(Peer& peer, Clock::time_point now) {
  Frame ping = frame(FrameKind::ping, peer.address.host_id);
  ping.number = stamp(now);
  const bool sent = peer.link->send(ping) == SendOutcome::sent;
  peer.link->ping_due = now + (sent ? config_.heartbeat : kPingRetry);
}

void MeshLoop::pump(Peer& peer) {
  const HostId& id = peer.address.host_id;
  const Frame header = frame(FrameKind::data, id);
  while (!peer.pending.empty()) {
    const std::size_t bytes = peer.pending.front().size();
    if (peer.link->send(header, &peer.pending.front()) != SendOutcome::sent) return;
    peer.pending.pop_front();
    outbox_->message_left(id, bytes);
  }
}

}  // namespace railhead::mesh
