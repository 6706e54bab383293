// One connected (FI_EP_MSG) peer: an endpoint and its own completion queue, so that an immediate's source is known
// where a remote completion names none (tcp).
#pragma once

#include <memory>
#include <optional>

#include "daemon/fabric/ofi_completion.hpp"
#include "daemon/fabric/ofi_writes.hpp"

namespace railhead::fabric {

class OfiConnection {
 public:
  // info is the one to connect with, or the one of a connection request.
  static Result<std::unique_ptr<OfiConnection>> create(OfiDomain& domain, fi_info* info, fid_eq* events, PeerId peer,
                                                       const Token& token, Deadline deadline);

  Result<void> connect(const void* address, const void* hello, std::size_t bytes);
  Result<void> accept();

  PeerId peer() const { return writes_.peer(); }
  const Token& token() const { return token_; }
  Deadline deadline() const { return deadline_; }
  bool up() const { return up_; }
  void set_up() { up_ = true; }
  fid* endpoint_fid() const { return &endpoint_->fid; }
  fid* queue_fid() const { return &queue_->fid; }
  Result<int> queue_descriptor() const { return wait_descriptor(&queue_->fid); }

  Result<PostState> post(const Write& write) {
    return writes_.post(endpoint_.get(), FI_ADDR_UNSPEC, write, write.immediate);
  }

  // Reads up to `limit` completions into events. What ended the connection, once something did.
  std::optional<Status> read(EventQueue& events, std::size_t limit);

  // Reads what already completed, lets the provider drop the rest, reports that as failed for `reason`.
  void close(EventQueue& events, const Status& reason);

 private:
  OfiConnection(OfiDomain& domain, PeerId peer, const Token& token, Deadline deadline)
      : token_(token), deadline_(deadline), writes_(domain, peer, domain.info()->tx_attr->size) {}

  void handle(const Completion& completion, EventQueue& events);

  Token token_;
  Deadline deadline_;
  bool up_ = false;
  std::optional<Status> broken_;
  OfiWrites writes_;
  Fid<fid_cq> queue_;  // outlives the endpoint that is bound to it
  Fid<fid_ep> endpoint_;
};

}  // namespace railhead::fabric
