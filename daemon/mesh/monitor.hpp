// What ZeroMQ tells of the connections of one socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <zmq.hpp>

namespace railhead::mesh {

class SocketMonitor {
 public:
  struct Event {
    std::uint16_t id = 0;     // ZMQ_EVENT_...
    std::uint32_t value = 0;  // its meaning depends on the id
  };

  // `name` is unique in the context, `events` a mask. The watched socket outlives the monitor. Throws zmq::error_t.
  SocketMonitor(zmq::context_t& context, zmq::socket_ref watched, const std::string& name, int events);
  ~SocketMonitor();
  SocketMonitor(const SocketMonitor&) = delete;
  SocketMonitor& operator=(const SocketMonitor&) = delete;

  // Readable when an event waits.
  [[nodiscard]] zmq::socket_ref socket() { return socket_; }
  // Empty when nothing waits.
  std::optional<Event> next();

 private:
  zmq::socket_ref watched_;
  zmq::socket_t socket_;
};

}  // namespace railhead::mesh
