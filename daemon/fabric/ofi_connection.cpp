#include "daemon/fabric/ofi_connection.hpp"

#include <rdma/fi_cm.h>

#include <array>

#include "daemon/fabric/ofi_error.hpp"

namespace railhead::fabric {
namespace {

constexpr std::size_t kBatch = 16;
// At the end of a connection: enough for both queues of any provider, and an end for a queue that never empties.
constexpr std::size_t kLastRead = 1 << 16;

}  // namespace

Result<std::unique_ptr<OfiConnection>> OfiConnection::create(OfiDomain& domain, fi_info* info, fid_eq* events,
                                                             PeerId peer, const Token& token, Deadline deadline) {
  std::unique_ptr<OfiConnection> self(new OfiConnection(domain, peer, token, deadline));
  auto queue = open_completion_queue(domain.domain(), info->tx_attr->size + info->rx_attr->size);
  if (!queue) return fail(queue.error());
  self->queue_ = std::move(*queue);
  fid_ep* endpoint = nullptr;
  if (auto rc = ofi_check("fi_endpoint", fi_endpoint(domain.domain(), info, &endpoint, nullptr)); !rc) {
    return fail(rc.error());
  }
  self->endpoint_.reset(endpoint);
  if (auto rc = ofi_check("fi_ep_bind", fi_ep_bind(endpoint, &self->queue_->fid, FI_TRANSMIT | FI_RECV)); !rc) {
    return fail(rc.error());
  }
  if (auto rc = ofi_check("fi_ep_bind", fi_ep_bind(endpoint, &events->fid, 0)); !rc) return fail(rc.error());
  if (auto rc = ofi_check("fi_enable", fi_enable(endpoint)); !rc) return fail(rc.error());
  return self;
}

Result<void> OfiConnection::connect(const void* address, const void* hello, std::size_t bytes) {
  return ofi_check("fi_connect", fi_connect(endpoint_.get(), address, hello, bytes));
}

Result<void> OfiConnection::accept() {
  return ofi_check("fi_accept", fi_accept(endpoint_.get(), nullptr, 0));
}

std::optional<Status> OfiConnection::read(EventQueue& events, std::size_t limit) {
  std::array<Completion, kBatch> batch;
  for (std::size_t total = 0; total < limit;) {
    const std::size_t count = read_completions(queue_.get(), batch);
    if (count == 0) break;
    for (std::size_t i = 0; i < count; ++i) handle(batch[i], events);
    total += count;
    if (broken_ && count == 1 && batch[0].what == Completion::What::unknown) break;
  }
  return broken_;
}

void OfiConnection::handle(const Completion& completion, EventQueue& events) {
  if (!completion.status.ok()) {
    Status status(Code::peer_lost, "connection to " + name_of(peer()) + ": " + completion.status.message());
    // The first error names the cause; those that follow are the provider's flush of its queues.
    if (!broken_) broken_ = status;
    if (completion.what == Completion::What::write) {
      writes_.failed(*static_cast<OfiWrite*>(completion.context), std::move(status), events);
    }
    return;
  }
  if (completion.what == Completion::What::write) {
    writes_.done(*static_cast<OfiWrite*>(completion.context), events);
  } else if (completion.what == Completion::What::immediate) {
    events.immediate(peer(), static_cast<std::uint32_t>(completion.data));
  }
}

void OfiConnection::close(EventQueue& events, const Status& reason) {
  if (up_) read(events, kLastRead);
  // The provider keeps no pointer into the source memory of a closed endpoint.
  endpoint_.reset();
  writes_.fail_all(reason, events);
  queue_.reset();
}

}  // namespace railhead::fabric
