// Wraps any Fabric and injects what networks and NICs do, so that every test can run the recovery code.
//
// A write is held back whole: data and immediate go together. An immediate is held back again on arrival, so data may
// be long in place before it is announced, never the other way round. A repeated write is posted back to back with the
// original, before either is reported: once the far side has granted the slot again, no copy of it is left anywhere.
// Only provider behaviour is imitated: whoever drops a peer here sees peer_down, and the far side sees it too.
#pragma once

#include <map>
#include <memory>
#include <random>

#include "daemon/fabric/event_queue.hpp"
#include "daemon/fabric/fabric.hpp"
#include "daemon/fabric/fault_config.hpp"
#include "daemon/fabric/fault_hold.hpp"

namespace railhead::fabric {

class FaultFabric final : public Fabric {
 public:
  FaultFabric(std::unique_ptr<Fabric> inner, const FaultConfig& config);

  Result<RegionId> register_memory(void* address, std::size_t bytes) override;
  Result<void> deregister(RegionId region) override;
  Result<RemoteKey> remote_key(RegionId region) const override { return inner_->remote_key(region); }
  std::string address() const override { return inner_->address(); }
  Result<PeerId> expect_peer(const Token& token, Deadline deadline) override;
  Result<PeerId> open_peer(const std::string& address, const Token& token, Deadline deadline) override;
  void close_peer(PeerId peer) override;
  Result<PostState> post_write(const Write& write) override;
  std::size_t poll(std::span<Event> out) override;
  bool arm() override;
  int wait_fd() const override { return inner_->wait_fd(); }
  FabricInfo describe() const override;

 private:
  // A write that the inner fabric has, once or twice, under a context of ours.
  struct Posted {
    PeerId peer{};
    std::uint64_t context = 0;
    int copies = 0;
    Status status;  // of the copies reported so far
  };
  struct Peer {
    Token token{};
    std::size_t outstanding = 0;  // writes in posted_
    bool up = false;
    bool dropping = false;  // closed below; peer_down once nothing is outstanding
    Status why;
  };

  bool chance(double share);
  void note_fault(bool happened) { injected_ += happened ? 1U : 0U; }
  void release_writes();
  bool send(const Write& write);
  void release_immediates();
  void handle(Event event);
  void end_copy(const Event& event);
  void finish_peer(PeerId peer, Status why);
  void fail_held(PeerId peer, const Status& why);
  void drop(PeerId peer, Status why);

  std::unique_ptr<Fabric> inner_;
  FaultConfig config_;
  std::mt19937_64 random_;
  std::uint64_t polls_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t injected_ = 0;  // held back, repeated, failed
  std::uint64_t next_context_ = 0;
  std::int64_t budget_ = 0;  // bytes that may leave now, when slowed
  std::size_t write_queue_;
  std::map<RegionId, std::size_t> region_bytes_;
  std::map<PeerId, Peer> peers_;
  std::map<std::uint64_t, Posted> posted_;  // by inner context
  FaultHold<Write> held_;
  FaultHold<Event> late_;
  EventQueue events_;
};

}  // namespace railhead::fabric
