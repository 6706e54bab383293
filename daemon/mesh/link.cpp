#include "daemon/mesh/link.hpp"

#include "daemon/mesh/endpoint.hpp"

namespace railhead::mesh {
namespace {

// Messages per socket and direction inside ZeroMQ. Small, so that the bound that senders see is the real one.
constexpr int kSocketQueue = 64;
// CURVE adds a few dozen bytes to each part; the limit itself is checked at the sender.
constexpr std::int64_t kWireLimit = static_cast<std::int64_t>(kMaxMessageBytes) + 4096;
constexpr int kReconnectMs = 50;
constexpr int kWatched = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                         ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED;

}  // namespace

void configure_socket(zmq::socket_t& socket, const MeshConfig& config, bool v6, bool server) {
  const int heartbeat = static_cast<int>(config.heartbeat.count());
  const int timeout = static_cast<int>(config.timeout.count());
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::ipv6, v6);
  socket.set(zmq::sockopt::sndhwm, kSocketQueue);
  socket.set(zmq::sockopt::rcvhwm, kSocketQueue);
  socket.set(zmq::sockopt::maxmsgsize, kWireLimit);
  socket.set(zmq::sockopt::heartbeat_ivl, heartbeat);
  // Later than our own pings: ZeroMQ closes a silent connection, and who is told that it was closed looks for a death.
  socket.set(zmq::sockopt::heartbeat_timeout, timeout + heartbeat);
  socket.set(zmq::sockopt::heartbeat_ttl, timeout + heartbeat);
  socket.set(zmq::sockopt::handshake_ivl, timeout);
  if (!config.keys) return;
  socket.set(zmq::sockopt::curve_publickey, config.keys->public_key);
  socket.set(zmq::sockopt::curve_secretkey, config.keys->secret_key);
  if (server) {
    socket.set(zmq::sockopt::curve_server, true);
  } else {
    socket.set(zmq::sockopt::curve_serverkey, config.keys->public_key);
  }
}

SendOutcome send_frame(zmq::socket_ref socket, const std::string& route, const Frame& frame, zmq::message_t* payload) {
  // Only the first part can be refused for want of room: ZeroMQ takes the rest of a message that it has begun.
  const auto more = zmq::send_flags::sndmore | zmq::send_flags::dontwait;
  try {
    if (!route.empty() && !socket.send(zmq::buffer(route), more)) return SendOutcome::full;
    const std::string header = encode_frame(frame);
    if (!socket.send(zmq::buffer(header), payload != nullptr ? more : zmq::send_flags::dontwait)) {
      return SendOutcome::full;
    }
    if (payload != nullptr) socket.send(std::move(*payload), zmq::send_flags::dontwait);
    return SendOutcome::sent;
  } catch (const zmq::error_t&) {
    return SendOutcome::gone;  // EHOSTUNREACH: the connection behind the route has ended
  }
}

Link::Link(zmq::context_t& context, const MeshConfig& config, const std::string& endpoint, const std::string& route)
    : opened(Clock::now()),
      heard(opened),
      ping_due(opened + config.heartbeat),
      socket_(context, zmq::socket_type::dealer),
      monitor_(context, socket_, "link-" + route, kWatched) {
  const auto parsed = parse_endpoint(endpoint, "peer endpoint");
  configure_socket(socket_, config, !(parsed && parsed->is_v4_literal()), false);
  socket_.set(zmq::sockopt::routing_id, route);
  socket_.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
  socket_.connect(endpoint);
}

SendOutcome Link::send(const Frame& frame, zmq::message_t* payload) {
  return send_frame(socket_, {}, frame, payload);
}

std::optional<Result<Frame>> Link::receive() {
  zmq::message_t part;
  if (!socket_.recv(part, zmq::recv_flags::dontwait)) return std::nullopt;
  auto frame = decode_frame({part.data<std::byte>(), part.size()});
  while (part.more()) {
    if (!socket_.recv(part, zmq::recv_flags::dontwait)) break;
    frame = fail(Code::protocol, "a reply on a mesh link has more than one part");
  }
  return frame;
}

void Link::read_events() {
  while (const auto event = monitor_.next()) {
    LinkEvent& added = events_.emplace_back(LinkEvent{LinkEvent::Kind::handshake_failed, event->value});
    if (event->id == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) added.kind = LinkEvent::Kind::ready;
    if (event->id == ZMQ_EVENT_DISCONNECTED) added.kind = LinkEvent::Kind::disconnected;
    connected_ = added.kind == LinkEvent::Kind::ready;
  }
}

bool Link::connected() {
  read_events();
  return connected_;
}

std::optional<LinkEvent> Link::next_event() {
  read_events();
  if (events_.empty()) return std::nullopt;
  const LinkEvent event = events_.front();
  events_.pop_front();
  return event;
}

}  // namespace railhead::mesh
