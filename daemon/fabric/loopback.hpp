// A fabric inside one process: for tests and for pairs of daemons in one process.
//
// Every LoopbackFabric of a hub belongs to its own thread; what they share lies in the hub under one mutex. Bytes move
// when either side polls. It behaves as tcp does where that matters: bounded queues, random keys, offsets as
// addresses, a write with a wrong key ends the connection.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "daemon/fabric/event_queue.hpp"
#include "daemon/fabric/expectations.hpp"
#include "daemon/fabric/fabric.hpp"

namespace railhead::fabric {

class LoopbackHub {
 public:
  LoopbackHub() = default;
  LoopbackHub(const LoopbackHub&) = delete;
  LoopbackHub& operator=(const LoopbackHub&) = delete;

 private:
  friend class LoopbackFabric;

  struct Region {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    std::uint64_t key = 0;
    std::size_t in_flight = 0;
  };
  // One direction's end of a connection.
  struct Link {
    std::uint64_t far_endpoint = 0;
    PeerId far_peer{};
    Token token{};
    std::deque<Write> queue;  // posted here, not yet moved
  };
  struct Endpoint {
    std::map<RegionId, Region> regions;
    std::map<PeerId, Link> links;
    Expectations expected;
    EventQueue inbox;
    int bell = -1;  // eventfd
    bool armed = false;
    std::uint32_t next_id = 1;
    std::uint64_t refused = 0;
  };

  void ring(Endpoint& endpoint);
  // Moves up to a bounded number of writes from source to its far side; ends the link at the first bad write.
  void move_writes(Endpoint& source, PeerId peer);
  Status move_write(Endpoint& source, Endpoint& target, const Write& write);
  void end_link(Endpoint& side, PeerId peer, const Status& reason, bool report_down);
  void expire(Endpoint& endpoint);
  static Region* region_by_key(Endpoint& endpoint, std::uint64_t key);

  std::mutex mutex_;  // guards everything below
  std::map<std::uint64_t, Endpoint> endpoints_;
  std::uint64_t next_endpoint_ = 1;
};

class LoopbackFabric final : public Fabric {
 public:
  static Result<std::unique_ptr<Fabric>> create(std::shared_ptr<LoopbackHub> hub);
  ~LoopbackFabric() override;

  Result<RegionId> register_memory(void* address, std::size_t bytes) override;
  Result<void> deregister(RegionId region) override;
  Result<RemoteKey> remote_key(RegionId region) const override;
  std::string address() const override;
  Result<PeerId> expect_peer(const Token& token, Deadline deadline) override;
  Result<PeerId> open_peer(const std::string& address, const Token& token, Deadline deadline) override;
  void close_peer(PeerId peer) override;
  Result<PostState> post_write(const Write& write) override;
  std::size_t poll(std::span<Event> out) override;
  bool arm() override;
  int wait_fd() const override { return bell_; }
  FabricInfo describe() const override;

 private:
  LoopbackFabric(std::shared_ptr<LoopbackHub> hub, int bell);
  LoopbackHub::Endpoint& self() const { return hub_->endpoints_.at(number_); }
  void connect(PeerId peer, const std::string& address, const Token& token);

  std::shared_ptr<LoopbackHub> hub_;
  int bell_;
  std::uint64_t number_ = 0;
};

}  // namespace railhead::fabric
