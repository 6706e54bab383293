// Callers whose handshake fails before they can say who they are, with their address and the reason.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "daemon/mesh/monitor.hpp"
#include "ipc/status.hpp"

namespace railhead::mesh {

class DoorWatch {
 public:
  // `router` is the socket that callers reach.
  DoorWatch(zmq::context_t& context, zmq::socket_ref router);

  // Readable when next() may have something.
  [[nodiscard]] zmq::socket_ref socket() { return monitor_.socket(); }
  // Why the next caller was turned away; empty when nothing waits.
  std::optional<Status> next();

 private:
  SocketMonitor monitor_;
  std::map<int, std::string> callers_;           // by descriptor: the address behind it
  std::optional<SocketMonitor::Event> failure_;  // its connection ends with the event after it
};

}  // namespace railhead::mesh
