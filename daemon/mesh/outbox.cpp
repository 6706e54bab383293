#include "daemon/mesh/outbox.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace railhead::mesh {

Outbox::Outbox(std::size_t max_messages, std::size_t max_bytes) : max_messages_(max_messages), max_bytes_(max_bytes) {}

Outbox::~Outbox() {
  if (bell_ >= 0) ::close(bell_);
}

Status Outbox::init() {
  bell_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return bell_ >= 0 ? Status() : system_status("cannot make the mesh's event descriptor", errno);
}

void Outbox::ring() {
  const std::uint64_t one = 1;
  // Fails only when the count would overflow: then the bell rings already.
  [[maybe_unused]] const ssize_t written = ::write(bell_, &one, sizeof one);
}

Status Outbox::push_message(const PeerAddress& peer, std::span<const std::byte> message) {
  Command command{Command::Kind::send, peer, zmq::message_t(message.data(), message.size())};
  const std::lock_guard lock(mutex_);
  if (closed_) return {Code::invalid_usage, "the mesh has stopped: nothing can be sent to " + peer.host_id.hex()};
  Load& load = loads_[peer.host_id];
  if (load.messages >= max_messages_ || message.size() > max_bytes_ - load.bytes) {
    return {Code::limit_exceeded, "the mesh queue to " + peer.host_id.hex() +
                                      " is full: " + std::to_string(load.messages) + " messages (limit " +
                                      std::to_string(max_messages_) + "), " + std::to_string(load.bytes) +
                                      " bytes (limit " + std::to_string(max_bytes_) + "); the peer reads too slowly"};
  }
  load.messages += 1;
  load.bytes += message.size();
  commands_.push_back(std::move(command));
  ring();
  return {};
}

Status Outbox::push(Command::Kind kind, const PeerAddress& peer) {
  const std::lock_guard lock(mutex_);
  if (closed_) return {Code::invalid_usage, "the mesh has stopped"};
  commands_.push_back(Command{kind, peer, zmq::message_t()});
  ring();
  return {};
}

void Outbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  ring();
}

std::vector<PeerInfo> Outbox::snapshot() const {
  const std::lock_guard lock(mutex_);
  return peers_;
}

std::deque<Command> Outbox::take(bool& closed) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(bell_, &count, sizeof count);  // empty: a spurious wake
  const std::lock_guard lock(mutex_);
  closed = closed_;
  return std::exchange(commands_, {});
}

void Outbox::message_left(const HostId& peer, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = loads_.find(peer);
  if (found == loads_.end()) return;
  found->second.messages -= 1;
  found->second.bytes -= bytes;
  if (found->second.messages == 0) loads_.erase(found);
}

void Outbox::publish(std::vector<PeerInfo> peers) {
  const std::lock_guard lock(mutex_);
  peers_ = std::move(peers);
}

}  // namespace railhead::mesh
