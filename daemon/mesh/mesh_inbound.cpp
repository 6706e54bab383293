// The links that peers dial: who may come in, and what they say.
#include "daemon/mesh/endpoint.hpp"
#include "daemon/mesh/mesh_loop.hpp"

namespace railhead::mesh {
namespace {

// Per round of the loop, so that a flood from one peer does not keep timers and other peers waiting.
constexpr int kMessagesPerRound = 256;
constexpr std::size_t kMaxParts = 3;  // route, header, message

Status wrong_version(const Frame& frame) {
  return {Code::version_mismatch, "a daemon that speaks mesh protocol " + std::to_string(frame.version) +
                                      " dialled one that speaks " + std::to_string(kMeshProtocol) +
                                      ": run the same railhead version on both hosts"};
}

}  // namespace

void MeshLoop::drain_router() {
  for (int i = 0; i < kMessagesPerRound; ++i) {
    if (!read_router()) return;
  }
}

bool MeshLoop::read_router() {
  std::vector<zmq::message_t> parts;
  std::size_t count = 0;
  bool more = true;
  while (more) {
    zmq::message_t part;
    if (!router_->recv(part, zmq::recv_flags::dontwait)) return false;
    more = part.more();
    if (++count <= kMaxParts) parts.push_back(std::move(part));
  }
  const std::string route = parts[0].to_string();
  if (count < 2 || count > kMaxParts) {
    on_inbound(route, fail(Code::protocol, "a mesh message has " + std::to_string(count) + " parts"), nullptr);
  } else {
    const auto received = decode_frame({parts[1].data<std::byte>(), parts[1].size()});
    on_inbound(route, received, count == kMaxParts ? &parts[2] : nullptr);
  }
  return true;
}

void MeshLoop::on_inbound(const std::string& route, const Result<Frame>& received, const zmq::message_t* payload) {
  const auto known = routes_.find(route);
  const Status fault =
      !received                            ? received.error()
      : received->version != kMeshProtocol ? wrong_version(*received)
      : (received->kind == FrameKind::data) != (payload != nullptr)
          ? Status(Code::protocol, "a mesh frame has a message where it must not, or none where it must")
          : Status();
  if (!fault.ok()) {
    refuse(route, fault);
    if (known == routes_.end()) return;
    const HostId id = known->second;
    return lose(id, {fault.code(), "peer daemon " + id.hex() + " broke the mesh protocol: " + fault.message()});
  }
  if (received->kind == FrameKind::hello) return on_hello(route, *received);
  if (known != routes_.end()) return on_peer_frame(*find(known->second), *received, payload);
  if (received->kind == FrameKind::close || received->kind == FrameKind::bye) {
    return reply(route, frame(FrameKind::closed, received->from));
  }
  // Not worth a log line: the loss was reported when the link was given up.
  Frame answer = frame(FrameKind::refuse, received->from);
  answer.number = static_cast<std::uint64_t>(Code::peer_lost);
  answer.text = "this link was given up earlier, after silence or a re-connection";
  reply(route, answer);
}

void MeshLoop::on_peer_frame(Peer& peer, const Frame& received, const zmq::message_t* payload) {
  const HostId id = peer.address.host_id;
  const std::string route = peer.inbound;
  peer.inbound_heard = Clock::now();
  switch (received.kind) {
    case FrameKind::data:
      if (handlers_.on_message) handlers_.on_message(id, {payload->data<std::byte>(), payload->size()});
      return;
    case FrameKind::ping: {
      Frame pong = frame(FrameKind::pong, id);
      pong.number = received.number;
      return reply(route, pong);
    }
    case FrameKind::need:
    case FrameKind::idle: peer.needs_us = received.kind == FrameKind::need; return;
    case FrameKind::close:
      reply(route, frame(FrameKind::closed, id));
      routes_.erase(route);
      peer.inbound.clear();
      peer.needs_us = false;
      return;
    case FrameKind::bye:
      reply(route, frame(FrameKind::closed, id));
      return lose(id, {Code::peer_lost, "peer daemon " + id.hex() + " at " + peer.address.endpoint + " shuts down"});
    default:
      return lose(id, {Code::protocol, "peer daemon " + id.hex() + " sent a frame of kind " +
                                           std::to_string(static_cast<int>(received.kind)) + " where no reply goes"});
  }
}

void MeshLoop::on_hello(const std::string& route, const Frame& hello) {
  if (stopping_) return;  // no answer: a refusal would make the peer drop what it has not read yet
  if (const Status verdict = judge_hello(hello); !verdict.ok()) return refuse(route, verdict);
  Peer* peer = find(hello.from);
  const bool again = peer != nullptr && !peer->inbound.empty() && peer->inbound != route;
  const bool cut = peer != nullptr && peer->link && peer->link->state == Link::State::up && !peer->link->connected();
  if (again || cut) {
    lose(hello.from, {Code::peer_lost, "peer daemon " + hello.from.hex() + " at " + hello.text +
                                           " re-connected: it restarted or had lost its earlier link"});
  }
  const auto added = find_or_add({hello.text, hello.from});
  if (!added) return refuse(route, added.error());
  peer = *added;
  peer->inbound = route;
  peer->inbound_heard = Clock::now();
  peer->advertised = hello.text;
  peer->needs_us = hello.need;
  routes_[route] = hello.from;
  welcome(route, hello.from);
  mark_up(*peer);
}

Status MeshLoop::judge_hello(const Frame& hello) {
  if (hello.to != config_.host_id) {
    return {Code::peer_lost, "the daemon at " + endpoint_ + " is " + config_.host_id.hex() + ", not " + hello.to.hex() +
                                 ": it was restarted, or the address belongs to another host now"};
  }
  if (hello.from == config_.host_id) {
    return {Code::mismatch, "the daemon at " + hello.text + " has the same host id as the one at " + endpoint_ + ", " +
                                hello.from.hex() + ": give each its own host_id_file"};
  }
  if (const auto parsed = parse_endpoint(hello.text, "the peer's mesh.advertise"); !parsed) return parsed.error();
  Peer* peer = find(hello.from);
  if (peer != nullptr && !peer->advertised.empty() && peer->advertised != hello.text && still_connected(*peer)) {
    return {Code::mismatch, "host id " + hello.from.hex() + " is connected from " + peer->advertised +
                                " already; a second daemon at " + hello.text +
                                " claims it: give each its own host_id_file"};
  }
  return {};
}

void MeshLoop::refuse(const std::string& route, const Status& reason) {
  Frame answer = frame(FrameKind::refuse, HostId{});
  answer.number = static_cast<std::uint64_t>(reason.code());
  answer.text = reason.message();
  reply(route, answer);
  if (handlers_.on_refused) handlers_.on_refused(reason);
}

SendOutcome MeshLoop::welcome(const std::string& route, const HostId& peer) {
  Frame answer = frame(FrameKind::welcome, peer);
  answer.text = endpoint_;
  return send_frame(*router_, route, answer, nullptr);
}

void MeshLoop::reply(const std::string& route, const Frame& answer) {
  // No room, or the connection is gone: the other side sees silence or the end of the connection, which it reports.
  send_frame(*router_, route, answer, nullptr);
}

}  // namespace railhead::mesh
