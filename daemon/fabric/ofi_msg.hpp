// Connected endpoints (FI_EP_MSG): libfabric's tcp, and verbs-like providers.
//
// The token travels in the connect message, so a stranger is refused before a connection exists.
#pragma once

#include <map>
#include <memory>

#include "daemon/fabric/expectations.hpp"
#include "daemon/fabric/factory.hpp"
#include "daemon/fabric/ofi_connection.hpp"
#include "daemon/fabric/ofi_domain.hpp"

namespace railhead::fabric {

class OfiMsgFabric final : public Fabric {
 public:
  static Result<std::unique_ptr<Fabric>> create(const FabricConfig& config);
  ~OfiMsgFabric() override;

  Result<RegionId> register_memory(void* address, std::size_t bytes) override {
    return domain_->register_memory(address, bytes);
  }
  Result<void> deregister(RegionId region) override { return domain_->deregister(region); }
  Result<RemoteKey> remote_key(RegionId region) const override { return domain_->remote_key(region); }
  std::string address() const override { return address_; }
  Result<PeerId> expect_peer(const Token& token, Deadline deadline) override;
  Result<PeerId> open_peer(const std::string& address, const Token& token, Deadline deadline) override;
  void close_peer(PeerId peer) override;
  Result<PostState> post_write(const Write& write) override;
  std::size_t poll(std::span<Event> out) override;
  bool arm() override;
  int wait_fd() const override { return epoll_; }
  FabricInfo describe() const override;

 private:
  OfiMsgFabric() = default;
  Result<void> listen();
  void read_connections();
  // Looks at connects, refusals, shutdowns and deadlines.
  void read_control();
  void handle_request(fi_info* request, const void* hello, std::size_t bytes);
  Result<void> accept(fi_info* request, const Expectations::Entry& entry);
  Result<std::unique_ptr<OfiConnection>> make_connection(fi_info* info, PeerId peer, const Token& token,
                                                         Deadline deadline);
  void handle_control_error();
  void handle_expired();
  PeerId peer_of(const fid* endpoint) const;
  void end_peer(PeerId peer, const Status& reason);

  std::unique_ptr<OfiDomain> domain_;
  Fid<fid_eq> control_;
  Fid<fid_pep> listener_;
  int epoll_ = -1;
  std::string address_;
  std::map<PeerId, std::unique_ptr<OfiConnection>> connections_;
  Expectations expected_;
  EventQueue events_;
  std::uint32_t next_peer_ = 1;
  std::uint32_t polls_ = 0;
  std::size_t connecting_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace railhead::fabric
