#include "daemon/fabric/ofi_msg.hpp"

#include <arpa/inet.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "daemon/fabric/checks.hpp"
#include "daemon/fabric/ofi_address.hpp"
#include "daemon/fabric/ofi_error.hpp"
#include "daemon/fabric/ofi_hello.hpp"
#include "daemon/fabric/ofi_probe.hpp"

namespace railhead::fabric {
namespace {

constexpr std::size_t kReadPerPeer = 64;     // completions of one peer per poll, so that no peer starves another
constexpr std::uint32_t kControlEvery = 64;  // polls; reading the control queue costs a system call on tcp
constexpr std::size_t kControlBatch = 64;    // control events per poll: strangers must not hold up the data
constexpr std::size_t kMaxBacklog = 1024;    // events the caller has not taken: then no more are read
constexpr std::size_t kImmediateBytes = 4;

// A control event with the private data that follows it.
struct ControlEntry {
  alignas(fi_eq_cm_entry) std::array<std::byte, sizeof(fi_eq_cm_entry) + 256> bytes{};
  const fi_eq_cm_entry& cm() const { return *reinterpret_cast<const fi_eq_cm_entry*>(bytes.data()); }
  const std::byte* data() const { return bytes.data() + sizeof(fi_eq_cm_entry); }
};

// An outgoing endpoint must not take the listener's port.
void clear_port(fi_info* info) {
  if (info->src_addr == nullptr) return;
  auto* address = static_cast<sockaddr*>(info->src_addr);
  if (address->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(address)->sin_port = 0;
  if (address->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(address)->sin6_port = 0;
}

}  // namespace

Result<std::unique_ptr<Fabric>> OfiMsgFabric::create(const FabricConfig& config) {
  auto info = probe_provider(config, FI_EP_MSG, kImmediateBytes);
  if (!info) return fail(info.error());
  auto domain = OfiDomain::open(std::move(*info));
  if (!domain) return fail(domain.error());
  std::unique_ptr<OfiMsgFabric> self(new OfiMsgFabric);
  self->domain_ = std::move(*domain);
  if (auto listening = self->listen(); !listening) return fail(listening.error());
  return std::unique_ptr<Fabric>(std::move(self));
}

Result<void> OfiMsgFabric::listen() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return fail(system_status("epoll_create1 for the fabric", errno));
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_FD;
  fid_eq* control = nullptr;
  if (auto rc = ofi_check("fi_eq_open", fi_eq_open(domain_->fabric(), &attributes, &control, nullptr)); !rc) return rc;
  control_.reset(control);
  const auto descriptor = wait_descriptor(&control->fid);
  if (!descriptor) return fail(descriptor.error());
  if (auto watched = watch(epoll_, *descriptor); !watched) return watched;
  fid_pep* listener = nullptr;
  if (auto rc = ofi_check("fi_passive_ep", fi_passive_ep(domain_->fabric(), domain_->info(), &listener, nullptr));
      !rc) {
    return rc;
  }
  listener_.reset(listener);
  if (auto rc = ofi_check("fi_pep_bind", fi_pep_bind(listener, &control->fid, 0)); !rc) return rc;
  if (auto rc = ofi_check("fi_listen", fi_listen(listener)); !rc) return rc;
  std::array<std::byte, 256> name;
  std::size_t bytes = name.size();
  if (auto rc = ofi_check("fi_getname", fi_getname(&listener->fid, name.data(), &bytes)); !rc) return rc;
  address_ = domain_->format(name.data(), bytes);
  clear_port(domain_->info());
  return {};
}

OfiMsgFabric::~OfiMsgFabric() {
  connections_.clear();  // without a last read: it would move bytes into memory that may be gone
  listener_.reset();
  control_.reset();
  if (epoll_ >= 0) ::close(epoll_);
}

Result<PeerId> OfiMsgFabric::expect_peer(const Token& token, Deadline deadline) {
  const PeerId peer{next_peer_++};
  if (auto added = expected_.add(peer, token, deadline); !added) return fail(added.error());
  return peer;
}

Result<PeerId> OfiMsgFabric::open_peer(const std::string& address, const Token& token, Deadline deadline) {
  if (token == Token{}) return fail(Code::invalid_argument, "the connection token is all zero: draw a random one");
  auto target = parse_address(domain_->provider(), address);
  if (!target) return fail(target.error());
  const Info info(fi_dupinfo(domain_->info()));
  if (!info) return fail(Code::out_of_memory, "fi_dupinfo for a connection to " + address);
  const PeerId peer{next_peer_++};
  auto connection = make_connection(info.get(), peer, token, deadline);
  if (!connection) return fail(connection.error());
  const auto hello = encode_hello(token);
  if (auto rc = (*connection)->connect(target->data(), hello.data(), hello.size()); !rc) {
    return fail(Code::peer_lost, "cannot connect to " + address + ": " + rc.error().message());
  }
  connections_[peer] = std::move(*connection);
  ++connecting_;
  return peer;
}

Result<std::unique_ptr<OfiConnection>> OfiMsgFabric::make_connection(fi_info* info, PeerId peer, const Token& token,
                                                                     Deadline deadline) {
  auto connection = OfiConnection::create(*domain_, info, control_.get(), peer, token, deadline);
  if (!connection) return connection;
  const auto descriptor = (*connection)->queue_descriptor();
  if (!descriptor) return fail(descriptor.error());
  // Closing the queue takes the descriptor out of the set again.
  if (auto watched = watch(epoll_, *descriptor); !watched) return fail(watched.error());
  return connection;
}

void OfiMsgFabric::close_peer(PeerId peer) {
  expected_.cancel(peer);
  const auto found = connections_.find(peer);
  if (found != connections_.end()) {
    if (!found->second->up()) --connecting_;
    found->second->close(events_, closed_here(peer));
    connections_.erase(found);
  }
  events_.forget_peer(peer);
}

Result<PostState> OfiMsgFabric::post_write(const Write& write) {
  const auto found = connections_.find(write.peer);
  if (found == connections_.end() || !found->second->up()) return not_up(write.peer);
  return found->second->post(write);
}

std::size_t OfiMsgFabric::poll(std::span<Event> out) {
  if (events_.size() < kMaxBacklog) read_connections();
  if (connecting_ > 0 || ++polls_ % kControlEvery == 0) read_control();
  return events_.take(out);
}

void OfiMsgFabric::read_connections() {
  std::vector<std::pair<PeerId, Status>> broken;
  for (auto& [peer, connection] : connections_) {
    if (!connection->up()) continue;
    if (auto why = connection->read(events_, kReadPerPeer)) broken.emplace_back(peer, std::move(*why));
  }
  for (const auto& [peer, why] : broken) end_peer(peer, why);
}

void OfiMsgFabric::read_control() {
  for (std::size_t i = 0; i < kControlBatch; ++i) {
    ControlEntry entry;
    std::uint32_t kind = 0;
    const ssize_t bytes = fi_eq_read(control_.get(), &kind, entry.bytes.data(), entry.bytes.size(), 0);
    if (bytes == -FI_EAVAIL) {
      handle_control_error();
      continue;
    }
    if (bytes < static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) break;
    if (kind == FI_CONNREQ) {
      const Info request(entry.cm().info);
      handle_request(request.get(), entry.data(), static_cast<std::size_t>(bytes) - sizeof(fi_eq_cm_entry));
      continue;
    }
    const PeerId peer = peer_of(entry.cm().fid);
    const auto found = connections_.find(peer);
    if (found == connections_.end()) continue;
    if (kind == FI_CONNECTED) {
      found->second->set_up();
      --connecting_;
      events_.peer_up(peer, found->second->token());
    } else if (kind == FI_SHUTDOWN) {
      end_peer(peer, {Code::peer_lost, name_of(peer) + " closed the connection (ECONNRESET)"});
    }
  }
  handle_expired();
}

void OfiMsgFabric::handle_request(fi_info* request, const void* hello, std::size_t bytes) {
  const auto token = decode_hello(hello, bytes);
  const auto entry = token ? expected_.take(*token) : std::nullopt;
  if (!entry) {
    ++refused_;
    fi_reject(listener_.get(), request->handle, nullptr, 0);
    return;
  }
  if (auto accepted = accept(request, *entry); !accepted) {
    events_.peer_down(entry->peer, entry->token, accepted.error());
  }
}

Result<void> OfiMsgFabric::accept(fi_info* request, const Expectations::Entry& entry) {
  auto connection = make_connection(request, entry.peer, entry.token, entry.deadline);
  if (!connection) {
    fi_reject(listener_.get(), request->handle, nullptr, 0);
    return fail(connection.error());
  }
  if (auto rc = (*connection)->accept(); !rc) return rc;
  connections_[entry.peer] = std::move(*connection);
  ++connecting_;
  return {};
}

void OfiMsgFabric::handle_control_error() {
  fi_eq_err_entry error{};
  if (fi_eq_readerr(control_.get(), &error, 0) < 0) return;
  const PeerId peer = peer_of(error.fid);
  const auto found = connections_.find(peer);
  if (found == connections_.end()) return;
  const bool was_up = found->second->up();
  const bool refused = !was_up && error.err == FI_ECONNREFUSED;
  const std::string what = name_of(peer) + (was_up ? " is lost" : " cannot be reached");
  end_peer(peer, ofi_status(Code::peer_lost, refused ? what + ", nobody listens there or the token was refused" : what,
                            error.err));
}

void OfiMsgFabric::handle_expired() {
  if (connecting_ == 0 && expected_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  for (const auto& entry : expected_.take_expired(now)) {
    events_.peer_down(entry.peer, entry.token, not_come(entry.peer));
  }
  std::vector<PeerId> late;
  for (const auto& [peer, connection] : connections_) {
    if (!connection->up() && now > connection->deadline()) late.push_back(peer);
  }
  for (const PeerId peer : late) {
    end_peer(peer, {Code::timeout, name_of(peer) + " did not answer before the deadline of the connection"});
  }
}

PeerId OfiMsgFabric::peer_of(const fid* endpoint) const {
  for (const auto& [peer, connection] : connections_) {
    if (connection->endpoint_fid() == endpoint) return peer;
  }
  return PeerId{0};
}

void OfiMsgFabric::end_peer(PeerId peer, const Status& reason) {
  const auto found = connections_.find(peer);
  if (found == connections_.end()) return;
  if (!found->second->up()) --connecting_;
  found->second->close(events_, reason);
  events_.peer_down(peer, found->second->token(), reason);
  connections_.erase(found);
}

bool OfiMsgFabric::arm() {
  // Otherwise what waits there would wake the sleeper again and again.
  read_control();
  if (!events_.empty()) return false;
  std::vector<fid*> queues{&control_->fid};
  for (const auto& [peer, connection] : connections_) queues.push_back(connection->queue_fid());
  return fi_trywait(domain_->fabric(), queues.data(), static_cast<int>(queues.size())) == FI_SUCCESS;
}

FabricInfo OfiMsgFabric::describe() const {
  FabricInfo info = domain_->describe();
  info.address = address_;
  info.refused_peers = refused_;
  return info;
}

}  // namespace railhead::fabric
