#include "daemon/mesh/door_watch.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>

namespace railhead::mesh {
namespace {

// HANDSHAKE_FAILED_AUTH is the KeyGate's to tell: it knows more.
constexpr int kWatched = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                         ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_DISCONNECTED;

// Of a connection that was just accepted; empty when it has ended already.
std::string address_behind(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof(peer);
  std::array<char, NI_MAXHOST> text{};
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return {};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&peer), length, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return {};
  }
  return text.data();
}

Status reason_of(const SocketMonitor::Event& failure, const std::string& address) {
  const std::string who = "a caller from " + (address.empty() ? "an unknown address" : address);
  const std::string keys = ": every daemon needs the same mesh.key_file, or none";
  if (failure.id == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) {
    // One side without keys: whoever sees it first hangs up.
    return {Code::peer_lost, who + " left, or fell silent, before the handshake was complete" + keys};
  }
  switch (failure.value) {
    case ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC:
      return {Code::permission, who + " does not hold this cluster's mesh key" + keys};
    case ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
      return {Code::permission, who + " has a mesh key and this daemon has none, or the other way round" + keys};
    default:
      return {Code::protocol,
              who + " does not speak as a mesh does (ZeroMQ protocol error " + std::to_string(failure.value) + ")"};
  }
}

}  // namespace

DoorWatch::DoorWatch(zmq::context_t& context, zmq::socket_ref router) : monitor_(context, router, "door", kWatched) {}

std::optional<Status> DoorWatch::next() {
  while (const auto event = monitor_.next()) {
    const int fd = static_cast<int>(event->value);
    if (event->id == ZMQ_EVENT_ACCEPTED) {
      callers_[fd] = address_behind(fd);
    } else if (event->id == ZMQ_EVENT_DISCONNECTED) {
      const auto caller = callers_.extract(fd);
      if (!failure_) continue;
      Status reason = reason_of(*failure_, caller.empty() ? std::string() : caller.mapped());
      failure_.reset();
      return reason;
    } else {
      failure_ = event;
    }
  }
  return std::nullopt;
}

}  // namespace railhead::mesh
