#include "daemon/fabric/ofi_rdm.hpp"

#include <rdma/fi_cm.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "daemon/fabric/checks.hpp"
#include "daemon/fabric/ofi_address.hpp"
#include "daemon/fabric/ofi_error.hpp"
#include "daemon/fabric/ofi_probe.hpp"

namespace railhead::fabric {
namespace {

constexpr std::size_t kBatch = 64;         // completions per poll
constexpr std::size_t kMaxBacklog = 1024;  // events the caller has not taken: then no more are read
constexpr std::size_t kTaggedBytes = 8;    // immediate and tag
constexpr std::size_t kMaxEarly = 4096;    // immediates before a welcome; more is not our protocol

}  // namespace

Result<std::unique_ptr<Fabric>> OfiRdmFabric::create(const FabricConfig& config) {
  auto info = probe_provider(config, FI_EP_RDM, kTaggedBytes);
  if (!info) return fail(info.error());
  auto domain = OfiDomain::open(std::move(*info));
  if (!domain) return fail(domain.error());
  std::unique_ptr<OfiRdmFabric> self(new OfiRdmFabric);
  self->domain_ = std::move(*domain);
  if (auto opened = self->open_endpoint(); !opened) return fail(opened.error());
  return std::unique_ptr<Fabric>(std::move(self));
}

Result<void> OfiRdmFabric::open_endpoint() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return fail(system_status("epoll_create1 for the fabric", errno));
  fi_info* info = domain_->info();
  auto queue = open_completion_queue(domain_->domain(), info->tx_attr->size + info->rx_attr->size);
  if (!queue) return fail(queue.error());
  queue_ = std::move(*queue);
  const auto descriptor = wait_descriptor(&queue_->fid);
  if (!descriptor) return fail(descriptor.error());
  if (auto watched = watch(epoll_, *descriptor); !watched) return watched;
  fi_av_attr attributes{};
  attributes.type = FI_AV_TABLE;
  fid_av* addresses = nullptr;
  if (auto rc = ofi_check("fi_av_open", fi_av_open(domain_->domain(), &attributes, &addresses, nullptr)); !rc) {
    return rc;
  }
  addresses_.reset(addresses);
  fid_ep* endpoint = nullptr;
  if (auto rc = ofi_check("fi_endpoint", fi_endpoint(domain_->domain(), info, &endpoint, nullptr)); !rc) return rc;
  endpoint_.reset(endpoint);
  if (auto rc = ofi_check("fi_ep_bind", fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV)); !rc) return rc;
  if (auto rc = ofi_check("fi_ep_bind", fi_ep_bind(endpoint, &addresses->fid, 0)); !rc) return rc;
  if (auto rc = ofi_check("fi_enable", fi_enable(endpoint)); !rc) return rc;
  auto mailbox = OfiMailbox::create(*domain_, endpoint);
  if (!mailbox) return fail(mailbox.error());
  mailbox_ = std::move(*mailbox);
  name_.resize(sizeof RdmMessage::name);
  std::size_t bytes = name_.size();
  if (auto rc = ofi_check("fi_getname", fi_getname(&endpoint->fid, name_.data(), &bytes)); !rc) return rc;
  name_.resize(bytes);
  return {};
}

OfiRdmFabric::~OfiRdmFabric() {
  for (const auto& [id, peer] : peers_) close_peer(id);
  // Before the buffers and contexts it may still use.
  endpoint_.reset();
  mailbox_.reset();
  if (epoll_ >= 0) ::close(epoll_);
}

Result<PeerId> OfiRdmFabric::expect_peer(const Token& token, Deadline deadline) {
  const PeerId peer{next_peer_++};
  if (auto added = expected_.add(peer, token, deadline); !added) return fail(added.error());
  return peer;
}

Result<PeerId> OfiRdmFabric::open_peer(const std::string& address, const Token& token, Deadline deadline) {
  if (token == Token{}) return fail(Code::invalid_argument, "the connection token is all zero: draw a random one");
  const auto name = parse_address(domain_->provider(), address);
  if (!name) return fail(name.error());
  const PeerId id{next_peer_++};
  const auto peer = add_peer(id, *name, token, deadline);
  if (!peer) return fail(peer.error());
  call(id, **peer);
  return id;
}

Result<OfiRdmFabric::Peer*> OfiRdmFabric::add_peer(PeerId id, const std::vector<std::byte>& name, const Token& token,
                                                   Deadline deadline) {
  auto peer = std::make_unique<Peer>(*domain_, id, token, deadline);
  const auto tag = random_key(sizeof peer->my_tag);
  if (!tag) return fail(tag.error());
  peer->my_tag = static_cast<std::uint32_t>(*tag);
  if (fi_av_insert(addresses_.get(), name.data(), 1, &peer->target, 0, nullptr) != 1) {
    return fail(Code::invalid_argument,
                "the address of " + name_of(id) + " is not one of provider " + domain_->provider());
  }
  if (!tags_.emplace(peer->my_tag, id).second) return fail(Code::internal, "two random tags are equal: try again");
  ++unsettled_;
  return (peers_[id] = std::move(peer)).get();
}

OfiRdmFabric::Peer* OfiRdmFabric::find(PeerId id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : found->second.get();
}

Result<PostState> OfiRdmFabric::post_write(const Write& write) {
  Peer* peer = find(write.peer);
  if (peer == nullptr || peer->stage != Stage::up) return not_up(write.peer);
  const std::uint64_t data = std::uint64_t{peer->their_tag} << 32 | write.immediate;
  return peer->writes.post(endpoint_.get(), peer->target, write, data);
}

std::size_t OfiRdmFabric::poll(std::span<Event> out) {
  if (events_.size() < kMaxBacklog) {
    std::array<Completion, kBatch> batch;
    const std::size_t count = read_completions(queue_.get(), batch);
    for (std::size_t i = 0; i < count; ++i) handle(batch[i]);
  }
  drive_peers();
  return events_.take(out);
}

void OfiRdmFabric::handle(const Completion& completion) {
  switch (completion.what) {
    case Completion::What::write: return handle_write(completion);
    case Completion::What::immediate:
      if (completion.status.ok()) handle_immediate(completion.data);
      return;
    case Completion::What::receive:
      if (completion.status.ok()) {
        if (const auto message = mailbox_->received(completion.context, completion.bytes)) handle_message(*message);
      }
      return;
    case Completion::What::send: {
      const PeerId id = mailbox_->sent(completion.context);
      Peer* peer = find(id);
      if (completion.status.ok() || peer == nullptr || peer->stage != Stage::called) return;
      peer->stage = Stage::calling;  // until its deadline
      peer->why = completion.status;
      return;
    }
    case Completion::What::unknown: return;
  }
}

void OfiRdmFabric::handle_write(const Completion& completion) {
  auto& write = *static_cast<OfiWrite*>(completion.context);
  if (!write.live) return;  // of an abandoned peer, reported already
  const PeerId id = write.owner->peer();
  if (completion.status.ok()) return write.owner->done(write, events_);
  const Status why(Code::peer_lost, "write to " + name_of(id) + ": " + completion.status.message());
  write.owner->failed(write, why, events_);
  if (Peer* peer = find(id)) begin_end(*peer, why, true);
}

void OfiRdmFabric::handle_immediate(std::uint64_t data) {
  const auto found = tags_.find(static_cast<std::uint32_t>(data >> 32));
  Peer* peer = found == tags_.end() ? nullptr : find(found->second);
  if (peer == nullptr || peer->early.size() >= kMaxEarly) {
    ++stray_;
  } else if (peer->stage == Stage::up) {
    events_.immediate(found->second, static_cast<std::uint32_t>(data));
  } else {
    peer->early.push_back(static_cast<std::uint32_t>(data));
  }
}

bool OfiRdmFabric::arm() {
  if (!events_.empty() || unsettled_ > 0) return false;
  fid* queue = &queue_->fid;
  return fi_trywait(domain_->fabric(), &queue, 1) == 0;
}

FabricInfo OfiRdmFabric::describe() const {
  FabricInfo info = domain_->describe();
  info.address = address();
  info.refused_peers = refused_;
  info.stray_immediates = stray_;
  return info;
}

}  // namespace railhead::fabric
