// One dialled connection: a DEALER, its monitor, and the sockets' settings that both ends share.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "daemon/mesh/frame.hpp"
#include "daemon/mesh/mesh.hpp"
#include "daemon/mesh/monitor.hpp"

namespace railhead::mesh {

using Clock = std::chrono::steady_clock;

// Heartbeats, limits, CURVE: what every socket of the mesh has. `server` picks the CURVE role.
void configure_socket(zmq::socket_t& socket, const MeshConfig& config, bool v6, bool server);

enum class SendOutcome { sent, full, gone };

// Sends header and payload (null: none) as one message, without waiting; `route` is a ROUTER's first part or empty.
// The payload is moved from only when sent.
SendOutcome send_frame(zmq::socket_ref socket, const std::string& route, const Frame& frame, zmq::message_t* payload);

struct LinkEvent {
  enum class Kind { ready, handshake_failed, disconnected };
  Kind kind;
  std::uint32_t detail;  // ZeroMQ's event value
};

class Link {
 public:
  enum class State { dialing, up, closing };

  // Throws zmq::error_t: out of descriptors, or an address that ZeroMQ does not take.
  Link(zmq::context_t& context, const MeshConfig& config, const std::string& endpoint, const std::string& route);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] zmq::socket_ref socket() { return socket_; }
  [[nodiscard]] zmq::socket_ref monitor() { return monitor_.socket(); }
  SendOutcome send(const Frame& frame, zmq::message_t* payload = nullptr);
  // Empty when nothing waits.
  std::optional<Result<Frame>> receive();
  std::optional<LinkEvent> next_event();
  // As the latest event says, be it taken already or not.
  [[nodiscard]] bool connected();

  State state = State::dialing;
  bool told_need = false;  // what the peer last heard of our need
  Clock::time_point opened;
  Clock::time_point heard;  // last sign of the peer's mesh thread
  Clock::time_point ping_due;
  std::string last_failure;  // of a handshake, for the error when dialling times out
  std::uint64_t round_trip_us = 0;

 private:
  void read_events();

  zmq::socket_t socket_;
  SocketMonitor monitor_;
  std::deque<LinkEvent> events_;  // not taken yet
  bool connected_ = false;
};

}  // namespace railhead::mesh
