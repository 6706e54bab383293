#include "daemon/fabric/ofi_mailbox.hpp"

#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstring>

#include "daemon/fabric/checks.hpp"
#include "daemon/fabric/ofi_error.hpp"

namespace railhead::fabric {
namespace {

constexpr std::size_t kReceives = 64;  // daemons that may say hello in the same instant
constexpr std::size_t kSends = 16;
constexpr std::size_t kHeadBytes = offsetof(RdmMessage, name);

}  // namespace

OfiMailbox::OfiMailbox(OfiDomain& domain, fid_ep* endpoint)
    : domain_(domain), endpoint_(endpoint), buffers_(kReceives + kSends) {}

Result<std::unique_ptr<OfiMailbox>> OfiMailbox::create(OfiDomain& domain, fid_ep* endpoint) {
  if (domain.info()->tx_attr->inject_size < kHeadBytes) {
    return fail(Code::unavailable, domain.provider() + " injects " +
                                       std::to_string(domain.info()->tx_attr->inject_size) + " bytes, needed are " +
                                       std::to_string(kHeadBytes));
  }
  std::unique_ptr<OfiMailbox> self(new OfiMailbox(domain, endpoint));
  if (auto registered = self->register_buffers(); !registered) return fail(registered.error());
  for (std::size_t i = 0; i < kReceives; ++i) {
    if (auto posted = self->post_receive(self->buffers_[i]); !posted) return fail(posted.error());
  }
  for (std::size_t i = kReceives; i < kReceives + kSends; ++i) self->free_.push_back(&self->buffers_[i]);
  return self;
}

Result<void> OfiMailbox::register_buffers() {
  const auto key = random_key(domain_.info()->domain_attr->mr_key_size);
  if (!key) return fail(key.error());
  fid_mr* memory = nullptr;
  const int rc = fi_mr_reg(domain_.domain(), buffers_.data(), buffers_.size() * sizeof(Buffer), FI_SEND | FI_RECV, 0,
                           *key, 0, &memory, nullptr);
  if (rc == 0) memory_.reset(memory);
  return ofi_check("fi_mr_reg of the mailbox", rc);
}

Result<void> OfiMailbox::post_receive(Buffer& buffer) {
  return ofi_check("fi_recv", fi_recv(endpoint_, &buffer.message, sizeof buffer.message, fi_mr_desc(memory_.get()),
                                      FI_ADDR_UNSPEC, &buffer.provider));
}

Result<PostState> OfiMailbox::send(fi_addr_t target, const RdmMessage& message, PeerId peer) {
  ssize_t rc = 0;
  if (message.name_bytes == 0) {
    rc = fi_inject(endpoint_, &message, kHeadBytes, target);
  } else {
    if (free_.empty()) return PostState::again;
    Buffer& buffer = *free_.back();
    buffer.message = message;
    buffer.peer = peer;
    rc = fi_send(endpoint_, &buffer.message, kHeadBytes + message.name_bytes, fi_mr_desc(memory_.get()), target,
                 &buffer.provider);
    if (rc == 0) free_.pop_back();
  }
  if (rc == -FI_EAGAIN) return PostState::again;
  if (rc < 0) return fail(ofi_status(Code::peer_lost, "hello to " + name_of(peer), static_cast<int>(rc)));
  return PostState::posted;
}

PeerId OfiMailbox::sent(void* context) {
  auto* buffer = static_cast<Buffer*>(context);
  free_.push_back(buffer);
  return buffer->peer;
}

std::optional<RdmMessage> OfiMailbox::received(void* context, std::size_t bytes) {
  auto* buffer = static_cast<Buffer*>(context);
  RdmMessage message;
  const bool whole = bytes >= kHeadBytes && bytes <= sizeof message;
  if (whole) std::memcpy(&message, &buffer->message, bytes);
  // A failed re-post shrinks the mailbox by one; with the endpoint gone all of it is gone anyway.
  [[maybe_unused]] const auto posted = post_receive(*buffer);
  if (!whole || message.magic != kHelloMagic || message.name_bytes != bytes - kHeadBytes) return std::nullopt;
  return message;
}

}  // namespace railhead::fabric
