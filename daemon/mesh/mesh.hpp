// Control messages between daemons: opaque, ordered per peer, over ZeroMQ. One thread per Mesh, no globals.
//
// A Mesh binds one ROUTER and dials one DEALER per peer; each direction has its own connection and a daemon that is
// dialled dials back, so each side watches a connection of its own and both addresses are proven. A link is
// kept while either side retains the other, and closes by a handshake after its last message was read.
//
// A host id has one peer at a time. Its endpoint tells a daemon from the one that was started in its place: whoever is
// named at another endpoint replaces a peer that is not connected (any more), and cannot be reached beside one that is.
//
// Loss: a closed connection is reported at once, silence (ZMTP heartbeats and own pings, which also notice a stuck mesh
// thread) within `timeout`. After a loss nothing is re-dialled until the next send or retain.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/mesh/host_id.hpp"
#include "daemon/mesh/keys.hpp"
#include "ipc/status.hpp"

namespace railhead::mesh {

inline constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;

struct MeshConfig {
  HostId host_id;
  std::string bind = "tcp://127.0.0.1:0";    // port 0: the kernel chooses
  std::string advertise;                     // what peers dial; empty = bind; port 0 = the port that was bound
  std::optional<MeshKeys> keys;              // none: no authentication, no encryption
  bool insecure = false;                     // allow a bind beyond loopback without keys
  std::chrono::milliseconds heartbeat{500};  // pings; at most timeout / 2
  std::chrono::milliseconds timeout{2000};   // silence, and an unanswered dial, end a peer after this
  std::size_t queue_messages = 4096;         // per peer, waiting in this process
  std::size_t queue_bytes = std::size_t{64} << 20;
  std::size_t max_peers = 256;  // about five file descriptors each
};

// What Mesh::start refuses before it binds: addresses, times, a bind beyond loopback without keys. The sentence names
// the key of the configuration. The host id is not looked at.
Status check_settings(const MeshConfig& config);

struct PeerAddress {
  // As the peer calls itself. An address rather than a name: ZeroMQ resolves names on the thread that serves all
  // connections, so a slow resolver delays every peer. May be empty towards a peer that is up.
  std::string endpoint;
  HostId host_id;
};

struct PeerInfo {
  PeerAddress address;
  bool up = false;
  std::uint64_t round_trip_us = 0;  // of the last ping; 0 = none yet
};

// All are called on the mesh thread, the first perhaps before Mesh::start has returned: they must be short (a thread
// stuck for `timeout` is lost to its peers), must not throw, and may call send, retain and release. Empty ones are
// skipped.
struct MeshHandlers {
  std::function<void(const HostId& from, std::span<const std::byte> message)> on_message;
  std::function<void(const PeerAddress& peer)> on_peer_up;
  // Once per peer that was up, and once per dial that failed or was not made. The endpoint matters: another daemon of
  // that host may be up. Code::ok: both sides had let go, never told to a side that retains (the other one may see the
  // peer come up again when its retain was on the way). All messages to the peer that were still queued are lost with
  // it.
  std::function<void(const PeerAddress& peer, const Status& reason)> on_peer_down;
  // Someone was turned away: wrong key, wrong version, identity taken. For the log; a daemon that dials tries again and
  // again.
  std::function<void(const Status& reason)> on_refused;
  // The mesh thread has ended by itself: no other daemon can be reached any more.
  std::function<void(const Status& reason)> on_failed;
};

class MeshLoop;
class Outbox;

class Mesh {
 public:
  // Binds and starts the thread. Errors: invalid_argument (a setting), permission (no keys beyond loopback),
  // unavailable (the address cannot be bound).
  static Result<std::unique_ptr<Mesh>> start(MeshConfig config, MeshHandlers handlers);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // What peers dial, with the real port.
  [[nodiscard]] const std::string& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] const HostId& host_id() const noexcept { return host_id_; }

  // Any thread; never blocks. Copies the message and dials where there is no link. Ordered per peer. Errors:
  // limit_exceeded (message too large, queue full: nothing was queued), invalid_argument (own host id), invalid_usage
  // (stopped). Ok means queued: a later loss is told by on_peer_down.
  Status send(const PeerAddress& peer, std::span<const std::byte> message);

  // Any thread. Keeps the peer's link up, dialling now; one release per retain. A loss leaves the count.
  Status retain(const PeerAddress& peer);
  Status release(const HostId& peer);

  // Any thread: a recent picture, for status output.
  [[nodiscard]] std::vector<PeerInfo> peers() const;

  // Says good-bye: what was queued is delivered where the peer reads within 200 ms. No handler runs after it returns.
  // Not from a handler.
  void stop();

 private:
  Mesh(HostId host_id, std::string endpoint, std::shared_ptr<Outbox> outbox);
  [[nodiscard]] Status check_peer(const PeerAddress& peer) const;

  HostId host_id_;
  std::string endpoint_;
  std::shared_ptr<Outbox> outbox_;
  std::unique_ptr<MeshLoop> loop_;
};

}  // namespace railhead::mesh
