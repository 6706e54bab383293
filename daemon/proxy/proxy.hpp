// A proxy: one thread that owns a fabric endpoint, the connections to peer daemons, and the rails of the groups that
// were given to it. It turns submissions of local ranks into fabric writes, publishes what arrives, returns credits,
// carries operation headers, and quiesces before anything is withdrawn. No locks on its data path: the control thread
// talks to it through a command queue and hears back through callbacks, which run on the proxy thread and must only
// hand over.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fabric/factory.hpp"
#include "ipc/layout/daemon_page.hpp"
#include "ipc/layout/group_segment.hpp"
#include "ipc/layout/shape.hpp"
#include "ipc/status.hpp"

namespace railhead::daemon {

using GroupKey = std::array<std::uint8_t, 16>;
using HostId = std::array<std::uint8_t, 16>;
using Token = std::array<std::uint8_t, 16>;

// A daemon of another host. One that was started in its place keeps the host id and has a mesh endpoint of its own.
struct DaemonId {
  HostId host{};
  std::string endpoint;
  auto operator<=>(const DaemonId&) const = default;
};

// A local rank's memory as the proxy needs it. The mappings are owned by the control side and outlive the group's
// presence in the proxy (close_group reports when they may go).
struct RailMemory {
  std::uint16_t rank = 0;
  std::byte* rail = nullptr;  // rail segment, ipc::RailSegmentLayout
  std::uint64_t rail_bytes = 0;
  std::byte* words = nullptr;  // rail words, ipc::RailWordsLayout
};

struct GroupRails {
  GroupKey key{};
  std::shared_ptr<const ipc::GroupShape> shape;
  std::uint16_t domain = 0;       // of this daemon
  ipc::GroupSegment segment;      // boards and live words of the domain
  std::uint8_t generation = 0;    // of the submission rings
  std::vector<RailMemory> ranks;  // local ranks, by local index
  std::vector<DaemonId> daemon_of_domain;
};

// What the peer daemon of another domain must know to write to us; travels in a mesh Wire message.
struct WireOffer {
  struct Ring {
    std::uint8_t kind = 0;  // 0 = data, 1 = header
    std::uint16_t rank = 0;
    std::uint32_t index = 0;
    std::uint16_t number = 0;
    std::uint8_t generation = 0;
    fabric::RemoteKey slots;
  };
  std::string fabric_address;
  Token token{};
  std::vector<Ring> rings;
  fabric::RemoteKey credits;
};

struct ProxyEvents {
  std::function<void(const GroupKey&, Result<std::vector<WireOffer>>)> opened;  // offers by domain (own one empty)
  std::function<void(const GroupKey&, std::uint16_t domain, Result<void>)> connected;  // path to that domain's daemon
  // A local rank broke the protocol, a path failed, a write failed: the group cannot go on.
  std::function<void(const GroupKey&, std::uint16_t domain, std::uint16_t rank, Status)> failed;
  // Everything posted towards this domain: (ring number of the receiver, slots). Sent on as a mesh Quiesced message.
  std::function<void(const GroupKey&, std::uint16_t domain, std::vector<std::pair<std::uint16_t, std::uint64_t>>)>
      quiesced;
  std::function<void(const GroupKey&)> closed;  // registrations are gone, memory may be unmapped
};

// Rings and counters of one group for `epctl ls rings` and `why`; copied on the proxy thread.
struct RingReport {
  GroupKey group{};
  std::uint16_t rank = 0;
  bool tx = false;
  bool dispatch = false;
  std::uint16_t home = 0, channel = 0, peer = 0;
  std::uint64_t head = 0;  // tx: posted; rx: arrived
  std::uint64_t tail = 0;  // tx: granted; rx: consumed
};
struct PeerReport {
  DaemonId daemon;
  std::string state;   // connecting, up, down
  std::string detail;  // provider, address, error
  std::uint64_t tx_bytes = 0, tx_writes = 0, rx_immediates = 0;
  std::uint64_t duplicates = 0;  // slots announced more than once
  std::uint64_t strays = 0;      // immediates for a ring that is not open (any more)
};
struct ProxyReport {
  std::string fabric;
  std::optional<std::uint64_t> injected_faults;  // where fabric.fault asks for any
  std::vector<RingReport> rings;
  std::vector<PeerReport> peers;
};

struct ProxyConfig {
  std::uint32_t index = 0;
  HostId host{};
  fabric::FabricConfig fabric;
  std::string cpus;            // cpu list; empty = near the NIC when hwloc knows it
  std::uint32_t spin_us = 50;  // poll this long after the last work before sleeping
  std::uint32_t rings_per_peer = 4096;
  ipc::DaemonPage* page = nullptr;
};

// abandon: after an abort; what is queued is dropped, and a peer that does not settle loses its connection.
// drain: the ranks left between operations; everything submitted is posted first, and peers may take their time: their
// ranks may still be finishing what ours took part in.
enum class CloseMode : std::uint8_t { abandon, drain };

class Proxy {
 public:
  static Result<std::unique_ptr<Proxy>> start(const ProxyConfig& config, ProxyEvents events);
  virtual ~Proxy() = default;  // stops the thread; queued writes are dropped

  // All from the control thread; each returns at once.
  virtual void open_group(GroupRails rails) = 0;
  virtual void connect_group(const GroupKey& key, std::uint16_t domain, WireOffer offer) = 0;
  // Posts nothing more, tells each peer how much was posted, waits for what peers say they posted (peer_quiesced) or
  // for the path to be dead, then deregisters.
  virtual void close_group(const GroupKey& key, CloseMode mode) = 0;
  virtual void peer_quiesced(const GroupKey& key, std::uint16_t domain,
                             std::vector<std::pair<std::uint16_t, std::uint64_t>> posted) = 0;
  // The mesh lost this daemon: its connection is closed, groups that use it fail.
  virtual void peer_lost(const DaemonId& daemon, const Status& reason) = 0;

  [[nodiscard]] virtual int bell() const = 0;  // eventfd for clients; owned by the proxy
  [[nodiscard]] virtual std::string fabric_address() const = 0;
  virtual void report(std::function<void(ProxyReport)> done) = 0;  // `done` runs on the proxy thread
};

}  // namespace railhead::daemon
