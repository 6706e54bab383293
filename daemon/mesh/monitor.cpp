#include "daemon/mesh/monitor.hpp"

#include <cstring>

namespace railhead::mesh {

SocketMonitor::SocketMonitor(zmq::context_t& context, zmq::socket_ref watched, const std::string& name, int events)
    : watched_(watched), socket_(context, zmq::socket_type::pair) {
  socket_.set(zmq::sockopt::linger, 0);
  // ZeroMQ's own thread waits where there is no room for an event, and with it all connections.
  socket_.set(zmq::sockopt::rcvhwm, 0);
  const std::string address = "inproc://" + name;
  if (zmq_socket_monitor(watched.handle(), address.c_str(), events) != 0) throw zmq::error_t();
  socket_.connect(address);
}

SocketMonitor::~SocketMonitor() {
  zmq_socket_monitor(watched_.handle(), nullptr, 0);
}

std::optional<SocketMonitor::Event> SocketMonitor::next() {
  zmq::message_t text;
  zmq::message_t address;
  if (!socket_.recv(text, zmq::recv_flags::dontwait)) return std::nullopt;
  if (text.more() && !socket_.recv(address, zmq::recv_flags::dontwait)) return std::nullopt;
  Event event;
  std::memcpy(&event.id, text.data(), sizeof event.id);
  std::memcpy(&event.value, text.data<char>() + sizeof event.id, sizeof event.value);
  return event;
}

}  // namespace railhead::mesh
