// Reliable datagram endpoints (FI_EP_RDM): one endpoint for all peers, for example tcp;ofi_rxm.
//
// A remote completion names no source here either. So each side draws a random tag per peer, tells it in the
// hello, and finds it again in the upper half of the 64-bit CQ data of that peer's writes. There is no connection to
// lose: a failed write or a bye ends a peer, and the death of an idle one is the mesh's to notice.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "daemon/fabric/expectations.hpp"
#include "daemon/fabric/factory.hpp"
#include "daemon/fabric/ofi_completion.hpp"
#include "daemon/fabric/ofi_mailbox.hpp"
#include "daemon/fabric/ofi_writes.hpp"

namespace railhead::fabric {

class OfiRdmFabric final : public Fabric {
 public:
  static Result<std::unique_ptr<Fabric>> create(const FabricConfig& config);
  ~OfiRdmFabric() override;

  Result<RegionId> register_memory(void* address, std::size_t bytes) override {
    return domain_->register_memory(address, bytes);
  }
  Result<void> deregister(RegionId region) override { return domain_->deregister(region); }
  Result<RemoteKey> remote_key(RegionId region) const override { return domain_->remote_key(region); }
  std::string address() const override { return domain_->format(name_.data(), name_.size()); }
  Result<PeerId> expect_peer(const Token& token, Deadline deadline) override;
  Result<PeerId> open_peer(const std::string& address, const Token& token, Deadline deadline) override;
  void close_peer(PeerId peer) override;
  Result<PostState> post_write(const Write& write) override;
  std::size_t poll(std::span<Event> out) override;
  bool arm() override;
  int wait_fd() const override { return epoll_; }
  FabricInfo describe() const override;

 private:
  enum class Stage { calling, called, up, ending };
  struct Peer {
    Peer(OfiDomain& domain, PeerId id, const Token& with, Deadline until)
        : token(with), deadline(until), writes(domain, id, domain.info()->tx_attr->size) {}
    Token token;
    Deadline deadline;  // of connecting; of ending later
    OfiWrites writes;
    Stage stage = Stage::calling;
    fi_addr_t target = FI_ADDR_UNSPEC;
    std::uint32_t my_tag = 0;
    std::uint32_t their_tag = 0;
    std::vector<std::uint32_t> early;  // immediates that overtook the welcome
    Status why;
    bool report_down = true;
  };

  OfiRdmFabric() = default;
  Result<void> open_endpoint();
  Result<Peer*> add_peer(PeerId id, const std::vector<std::byte>& name, const Token& token, Deadline deadline);
  Peer* find(PeerId id);

  void handle(const Completion& completion);
  void handle_write(const Completion& completion);
  void handle_immediate(std::uint64_t data);
  void handle_message(const RdmMessage& message);
  void handle_hello(const RdmMessage& message);
  void call(PeerId id, Peer& peer);
  void set_up(PeerId id, Peer& peer);
  // Connects, deadlines, and peers whose last writes the provider still has.
  void drive_peers();
  void begin_end(Peer& peer, Status why, bool report_down);
  void finish_end(PeerId id);

  std::unique_ptr<OfiDomain> domain_;
  int epoll_ = -1;
  Fid<fid_cq> queue_;
  Fid<fid_av> addresses_;
  Fid<fid_ep> endpoint_;
  std::unique_ptr<OfiMailbox> mailbox_;
  std::vector<std::byte> name_;
  std::map<PeerId, std::unique_ptr<Peer>> peers_;
  std::vector<std::unique_ptr<Peer>> abandoned_;  // their writes may still complete: contexts stay valid
  std::unordered_map<std::uint32_t, PeerId> tags_;
  Expectations expected_;
  EventQueue events_;
  std::uint32_t next_peer_ = 1;
  std::size_t unsettled_ = 0;  // peers that are neither up nor gone
  std::uint64_t refused_ = 0;
  std::uint64_t stray_ = 0;
};

}  // namespace railhead::fabric
