// The way from any thread to the mesh thread: a bounded queue of commands and a bell that zmq_poll can wait for.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>
#include <zmq.hpp>

#include "daemon/mesh/mesh.hpp"

namespace railhead::mesh {

struct Command {
  enum class Kind { send, retain, release };
  Kind kind = Kind::send;
  PeerAddress peer;
  zmq::message_t message;  // send only
};

class Outbox {
 public:
  // Limits per peer, on messages that no socket has taken yet.
  Outbox(std::size_t max_messages, std::size_t max_bytes);
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Whether the bell could be made.
  [[nodiscard]] Status init();
  // For poll: readable while commands wait.
  [[nodiscard]] int bell() const noexcept { return bell_; }

  // Senders' side, any thread.
  Status push_message(const PeerAddress& peer, std::span<const std::byte> message);
  Status push(Command::Kind kind, const PeerAddress& peer);
  void close();  // every later push is refused
  [[nodiscard]] std::vector<PeerInfo> snapshot() const;

  // Mesh thread's side.
  std::deque<Command> take(bool& closed);
  void message_left(const HostId& peer, std::size_t bytes);
  void publish(std::vector<PeerInfo> peers);

 private:
  struct Load {
    std::size_t messages = 0;
    std::size_t bytes = 0;
  };

  void ring();

  const std::size_t max_messages_;
  const std::size_t max_bytes_;
  int bell_ = -1;
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::deque<Command> commands_;
  std::unordered_map<HostId, Load, HostIdHash> loads_;
  std::vector<PeerInfo> peers_;
};

}  // namespace railhead::mesh
