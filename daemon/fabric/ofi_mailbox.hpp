// Small messages between FI_EP_RDM endpoints: how they meet and part.
#pragma once

#include <rdma/fi_endpoint.h>

#include <memory>
#include <optional>
#include <vector>

#include "daemon/fabric/ofi_domain.hpp"
#include "daemon/fabric/ofi_hello.hpp"

namespace railhead::fabric {

class OfiMailbox {
 public:
  // Posts the receives. The endpoint must be closed before the mailbox goes.
  static Result<std::unique_ptr<OfiMailbox>> create(OfiDomain& domain, fid_ep* endpoint);

  // again: the connection is being made, or all buffers are out. A completion with a context of ours follows for a
  // message with a name; the short ones are copied by the provider and report nothing.
  Result<PostState> send(fi_addr_t target, const RdmMessage& message, PeerId peer);
  // Frees the buffer of a send completion; the peer it was for.
  PeerId sent(void* context);
  // The message of a receive completion, if it is well formed; the buffer is posted again.
  std::optional<RdmMessage> received(void* context, std::size_t bytes);

 private:
  struct Buffer {
    fi_context2 provider{};  // first: the completion's context points here
    RdmMessage message;
    PeerId peer{};
  };

  OfiMailbox(OfiDomain& domain, fid_ep* endpoint);
  Result<void> register_buffers();
  Result<void> post_receive(Buffer& buffer);

  OfiDomain& domain_;
  fid_ep* endpoint_;
  std::vector<Buffer> buffers_;
  std::vector<Buffer*> free_;
  Fid<fid_mr> memory_;
};

}  // namespace railhead::fabric
