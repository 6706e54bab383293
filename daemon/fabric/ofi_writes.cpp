#include "daemon/fabric/ofi_writes.hpp"

#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include "daemon/fabric/ofi_error.hpp"

namespace railhead::fabric {

Result<PostState> OfiWrites::post(fid_ep* endpoint, fi_addr_t target, const Write& write, std::uint64_t data) {
  if (outstanding_ >= limit_) return PostState::again;
  auto source = domain_.source_of(write);
  if (!source) return fail(source.error());
  OfiWrite& slot = claim(write);
  iovec from{const_cast<std::byte*>(source->address), write.bytes};
  fi_rma_iov to{write.remote.base + write.remote_offset, write.bytes, write.remote.key};
  fi_msg_rma message{};
  message.msg_iov = &from;
  message.desc = &source->descriptor;
  message.iov_count = 1;
  message.addr = target;
  message.rma_iov = &to;
  message.rma_iov_count = 1;
  message.context = &slot.provider;
  message.data = data;
  // Measured on tcp, 16-byte writes: 3 % more per second. Providers with a doorbell gain a DMA read.
  const std::uint64_t inject = write.bytes <= domain_.info()->tx_attr->inject_size ? FI_INJECT : 0;
  const ssize_t rc = fi_writemsg(endpoint, &message, FI_COMPLETION | FI_REMOTE_CQ_DATA | inject);
  if (rc == 0) return PostState::posted;
  release(slot);
  if (rc == -FI_EAGAIN) return PostState::again;
  return fail(ofi_status(Code::peer_lost, "write to " + name_of(peer_) + " was not taken", static_cast<int>(rc)));
}

void OfiWrites::fail_all(const Status& status, EventQueue& events) {
  std::vector<OfiWrite*> live;
  for (OfiWrite& slot : slots_) {
    if (slot.live) live.push_back(&slot);
  }
  std::sort(live.begin(), live.end(), [](const OfiWrite* a, const OfiWrite* b) { return a->order < b->order; });
  for (OfiWrite* slot : live) failed(*slot, status, events);
}

OfiWrite& OfiWrites::claim(const Write& write) {
  if (free_.empty()) free_.push_back(&slots_.emplace_back());
  OfiWrite& slot = *free_.back();
  free_.pop_back();
  slot.owner = this;
  slot.context = write.context;
  slot.order = next_order_++;
  slot.region = write.local;
  slot.live = true;
  ++outstanding_;
  domain_.started(write.local);
  return slot;
}

std::uint64_t OfiWrites::release(OfiWrite& slot) {
  slot.live = false;
  free_.push_back(&slot);
  --outstanding_;
  domain_.ended(slot.region);
  return slot.context;
}

}  // namespace railhead::fabric
