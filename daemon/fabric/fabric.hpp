// One interface over every kind of NIC: registered memory, peers, writes that carry a 32-bit immediate, completions.
//
// Threads: an instance belongs to one thread at a time and takes no locks. Nothing here blocks.
// Order: none is promised between two writes, not even to the same peer. A write's data is in place when its own
// immediate is seen at the far side; nothing else says so. write_done is local: the provider needs the source no more.
// Progress: both sides have to poll; some providers move no byte for a side that does not.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ipc/status.hpp"

namespace railhead::fabric {

// Handles are never reused within one Fabric.
enum class RegionId : std::uint32_t {};
enum class PeerId : std::uint32_t {};

// One-time secret of a connection, spread by the mesh to exactly its two ends. The all-zero token is refused.
using Token = std::array<std::uint8_t, 16>;
using Deadline = std::chrono::steady_clock::time_point;

// What the far side needs to write into a region: target = base + offset. base is the region's virtual address, or 0
// where the provider addresses by offset.
struct RemoteKey {
  std::uint64_t key = 0;
  std::uint64_t base = 0;
};

struct Write {
  PeerId peer{};
  RegionId local{};
  std::uint64_t local_offset = 0;
  std::size_t bytes = 0;  // 0 is allowed: the immediate alone
  RemoteKey remote{};
  std::uint64_t remote_offset = 0;
  std::uint32_t immediate = 0;
  std::uint64_t context = 0;  // comes back in write_done or write_failed
};

// again: the queue is full, poll and post the same write once more.
enum class PostState { posted, again };

struct Event {
  enum class Kind : std::uint8_t {
    write_done,    // context, peer
    write_failed,  // context, peer, status with the provider's error name; peer_down follows
    immediate,     // peer, immediate: the write that carried it is in place
    peer_up,       // peer, token: writes may be posted
    peer_down,     // peer, token, status: comes after the last event of each of the peer's writes; the handle is dead
  };
  Kind kind = Kind::write_done;
  PeerId peer{};
  std::uint32_t immediate = 0;
  std::uint64_t context = 0;
  Token token{};
  Status status{};
};

// For status output and for choices that depend on what was granted.
struct FabricInfo {
  std::string provider;
  std::string fabric;
  std::string domain;
  std::string endpoint;  // "msg", "rdm", "loopback"
  std::string address;
  std::string faults;          // that are injected, empty in production
  std::uint64_t injected = 0;  // how often so far
  std::size_t max_write_bytes = 0;
  std::size_t write_queue = 0;         // outstanding writes per peer before `again`
  std::size_t inject_bytes = 0;        // writes up to this size are copied by the provider
  bool virtual_addresses = false;      // RemoteKey::base is an address
  bool provider_keys = false;          // keys are the provider's, not random
  std::uint64_t refused_peers = 0;     // connect attempts with an unknown, used or expired token
  std::uint64_t stray_immediates = 0;  // immediates that belong to no open peer
};

class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  // Closes every peer without reporting; their far sides see peer_down.
  virtual ~Fabric() = default;

  // Registers [address, address + bytes) as source and target of writes; the memory stays the caller's and must
  // outlive the registration. Keys are random where the provider lets us choose.
  virtual Result<RegionId> register_memory(void* address, std::size_t bytes) = 0;
  // invalid_usage while own writes from the region are outstanding. The caller sees to it that no peer still posts to
  // it: on tcp a write to a withdrawn key ends the whole connection.
  virtual Result<void> deregister(RegionId region) = 0;
  virtual Result<RemoteKey> remote_key(RegionId region) const = 0;

  // Opaque text for the peer's open_peer.
  virtual std::string address() const = 0;
  // Announces that a peer will connect with this token, which is used up by that. Call it before the far side learns
  // the token: an unknown token is refused at once. peer_up, or peer_down with timeout, follows.
  virtual Result<PeerId> expect_peer(const Token& token, Deadline deadline) = 0;
  // Starts to connect to a peer that expects the token; peer_up or peer_down follows, by the deadline at the latest.
  virtual Result<PeerId> open_peer(const std::string& address, const Token& token, Deadline deadline) = 0;
  // Ends the connection. Its outstanding writes are still reported, each once, by later polls, and their source memory
  // is free only then. No peer_down for one's own close. Closing an unknown or dead peer does nothing.
  virtual void close_peer(PeerId peer) = 0;

  // The source must stay unchanged until write_done or write_failed, or until the far side said that it came.
  // Errors: invalid_argument (names value and limit), peer_lost (no peer_up yet, or peer_down is on the way).
  virtual Result<PostState> post_write(const Write& write) = 0;
  // Moves data and takes up to out.size() events. 0 means nothing happened yet.
  virtual std::size_t poll(std::span<Event> out) = 0;

  // True: nothing is pending, and wait_fd() will become readable when something happens; poll() it for at most
  // kMaxSleep, since the deadlines of opening peers are looked at by poll() and arm() alone. False: do not sleep now.
  virtual bool arm() = 0;
  // For poll or epoll, valid as long as the Fabric; -1 where sleeping is impossible (then arm() is always false).
  virtual int wait_fd() const = 0;

  virtual FabricInfo describe() const = 0;
};

inline constexpr std::chrono::milliseconds kMaxSleep{100};

// "peer 3", for messages.
inline std::string name_of(PeerId peer) {
  return "peer " + std::to_string(static_cast<std::uint32_t>(peer));
}

}  // namespace railhead::fabric
