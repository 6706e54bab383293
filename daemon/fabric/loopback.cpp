#include "daemon/fabric/loopback.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "daemon/fabric/checks.hpp"

namespace railhead::fabric {
namespace {

constexpr std::size_t kQueue = 256;        // as deep as libfabric's tcp
constexpr std::size_t kMovesPerPoll = 64;  // bounds the time under the mutex
constexpr std::string_view kPrefix = "loopback:";

}  // namespace

void LoopbackHub::ring(Endpoint& endpoint) {
  if (!endpoint.armed) return;
  endpoint.armed = false;
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the descriptor is readable already.
  [[maybe_unused]] const ssize_t written = ::write(endpoint.bell, &one, sizeof one);
}

LoopbackHub::Region* LoopbackHub::region_by_key(Endpoint& endpoint, std::uint64_t key) {
  for (auto& [id, region] : endpoint.regions) {
    if (region.key == key) return &region;
  }
  return nullptr;
}

Status LoopbackHub::move_write(Endpoint& source, Endpoint& target, const Write& write) {
  const Region& from = source.regions.at(write.local);
  const Region* to = region_by_key(target, write.remote.key);
  if (to == nullptr || write.remote.base != 0 || !fits(write.remote_offset, write.bytes, to->bytes)) {
    return {Code::peer_lost, "write of " + std::to_string(write.bytes) + " bytes to " + name_of(write.peer) +
                                 " failed: EACCES, the key or the range is not registered there"};
  }
  std::byte* const target_bytes = to->address + write.remote_offset;
  const std::byte* const source_bytes = from.address + write.local_offset;
  // A repeated write changes nothing. Stored all the same it would race with the rank that reads the first one, which
  // the stores of a NIC cannot in the eyes of ThreadSanitizer.
  if (write.bytes > 0 && std::memcmp(target_bytes, source_bytes, write.bytes) != 0) {
    std::memcpy(target_bytes, source_bytes, write.bytes);
  }
  return {};
}

void LoopbackHub::move_writes(Endpoint& source, PeerId peer) {
  Link& link = source.links.at(peer);
  if (link.queue.empty()) return;
  Endpoint& target = endpoints_.at(link.far_endpoint);
  for (std::size_t moved = 0; moved < kMovesPerPoll && !link.queue.empty(); ++moved) {
    const Write write = link.queue.front();
    if (const Status status = move_write(source, target, write); !status.ok()) {
      const PeerId far_peer = link.far_peer;
      end_link(source, peer, status, true);
      end_link(target, far_peer, {Code::peer_lost, name_of(far_peer) + " ended the connection: a bad write"}, true);
      break;
    }
    link.queue.pop_front();
    --source.regions.at(write.local).in_flight;
    source.inbox.write_done(peer, write.context);
    target.inbox.immediate(link.far_peer, write.immediate);
  }
  ring(source);
  ring(target);
}

void LoopbackHub::end_link(Endpoint& side, PeerId peer, const Status& reason, bool report_down) {
  auto found = side.links.find(peer);
  if (found == side.links.end()) return;
  for (const Write& write : found->second.queue) {
    --side.regions.at(write.local).in_flight;
    side.inbox.write_failed(peer, write.context, reason);
  }
  if (report_down) side.inbox.peer_down(peer, found->second.token, reason);
  side.links.erase(found);
  ring(side);
}

void LoopbackHub::expire(Endpoint& endpoint) {
  if (endpoint.expected.empty()) return;
  for (const auto& entry : endpoint.expected.take_expired(std::chrono::steady_clock::now())) {
    endpoint.inbox.peer_down(entry.peer, entry.token, not_come(entry.peer));
  }
}

Result<std::unique_ptr<Fabric>> LoopbackFabric::create(std::shared_ptr<LoopbackHub> hub) {
  if (!hub) return fail(Code::invalid_argument, "provider loopback needs a LoopbackHub that both sides share");
  const int bell = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (bell < 0) return fail(system_status("eventfd for the loopback fabric", errno));
  return std::unique_ptr<Fabric>(new LoopbackFabric(std::move(hub), bell));
}

LoopbackFabric::LoopbackFabric(std::shared_ptr<LoopbackHub> hub, int bell) : hub_(std::move(hub)), bell_(bell) {
  const std::lock_guard lock(hub_->mutex_);
  number_ = hub_->next_endpoint_++;
  hub_->endpoints_[number_].bell = bell;
}

LoopbackFabric::~LoopbackFabric() {
  std::vector<PeerId> peers;
  {
    const std::lock_guard lock(hub_->mutex_);
    for (const auto& [peer, link] : self().links) peers.push_back(peer);
  }
  for (const PeerId peer : peers) close_peer(peer);
  {
    const std::lock_guard lock(hub_->mutex_);
    hub_->endpoints_.erase(number_);
  }
  ::close(bell_);
}

Result<RegionId> LoopbackFabric::register_memory(void* address, std::size_t bytes) {
  if (auto checked = check_region(address, bytes); !checked) return fail(checked.error());
  const auto key = random_key(8);
  if (!key) return fail(key.error());
  const std::lock_guard lock(hub_->mutex_);
  const RegionId id{self().next_id++};
  self().regions[id] = {static_cast<std::byte*>(address), bytes, *key, 0};
  return id;
}

Result<void> LoopbackFabric::deregister(RegionId region) {
  const std::lock_guard lock(hub_->mutex_);
  const auto found = self().regions.find(region);
  if (found == self().regions.end()) return unknown_region(region);
  if (found->second.in_flight > 0) return region_busy(region, found->second.in_flight);
  self().regions.erase(found);
  return {};
}

Result<RemoteKey> LoopbackFabric::remote_key(RegionId region) const {
  const std::lock_guard lock(hub_->mutex_);
  const auto found = self().regions.find(region);
  if (found == self().regions.end()) return unknown_region(region);
  return RemoteKey{found->second.key, 0};
}

std::string LoopbackFabric::address() const {
  return std::string(kPrefix) + std::to_string(number_);
}

Result<PeerId> LoopbackFabric::expect_peer(const Token& token, Deadline deadline) {
  const std::lock_guard lock(hub_->mutex_);
  const PeerId peer{self().next_id++};
  if (auto added = self().expected.add(peer, token, deadline); !added) return fail(added.error());
  return peer;
}

Result<PeerId> LoopbackFabric::open_peer(const std::string& address, const Token& token, Deadline) {
  if (!address.starts_with(kPrefix)) {
    return fail(Code::invalid_argument, "peer address '" + address +
                                            "' is not of provider loopback: both sides need "
                                            "the same provider");
  }
  const std::lock_guard lock(hub_->mutex_);
  const PeerId peer{self().next_id++};
  connect(peer, address, token);
  return peer;
}

void LoopbackFabric::connect(PeerId peer, const std::string& address, const Token& token) {
  auto& near = self();
  for (auto& [number, far] : hub_->endpoints_) {
    if (address != std::string(kPrefix) + std::to_string(number)) continue;
    const auto entry = far.expected.take(token);
    if (!entry) {
      ++far.refused;
      near.inbox.peer_down(peer, token,
                           {Code::permission, name_of(peer) + " refused the connection: it does not "
                                                              "expect this token"});
      return;
    }
    near.links[peer] = {number, entry->peer, token, {}};
    far.links[entry->peer] = {number_, peer, token, {}};
    near.inbox.peer_up(peer, token);
    far.inbox.peer_up(entry->peer, token);
    hub_->ring(far);
    return;
  }
  near.inbox.peer_down(peer, token, {Code::peer_lost, "no fabric has the address " + address + " in this process"});
}

void LoopbackFabric::close_peer(PeerId peer) {
  const std::lock_guard lock(hub_->mutex_);
  auto& near = self();
  near.expected.cancel(peer);
  const auto found = near.links.find(peer);
  if (found != near.links.end()) {
    const std::uint64_t far_endpoint = found->second.far_endpoint;
    const PeerId far_peer = found->second.far_peer;
    hub_->end_link(near, peer, closed_here(peer), false);
    hub_->end_link(hub_->endpoints_.at(far_endpoint), far_peer,
                   {Code::peer_lost, name_of(far_peer) + " closed the connection (ECONNRESET)"}, true);
  }
  near.inbox.forget_peer(peer);
}

Result<PostState> LoopbackFabric::post_write(const Write& write) {
  const std::lock_guard lock(hub_->mutex_);
  auto& near = self();
  const auto region = near.regions.find(write.local);
  if (region == near.regions.end()) return unknown_region(write.local);
  if (auto checked = check_source(write, region->second.bytes); !checked) return fail(checked.error());
  const auto link = near.links.find(write.peer);
  if (link == near.links.end()) return not_up(write.peer);
  if (link->second.queue.size() >= kQueue) return PostState::again;
  link->second.queue.push_back(write);
  ++region->second.in_flight;
  hub_->ring(hub_->endpoints_.at(link->second.far_endpoint));
  return PostState::posted;
}

std::size_t LoopbackFabric::poll(std::span<Event> out) {
  const std::lock_guard lock(hub_->mutex_);
  auto& near = self();
  near.armed = false;
  std::vector<PeerId> peers;
  for (const auto& [peer, link] : near.links) peers.push_back(peer);
  for (const PeerId peer : peers) {
    const auto outgoing = near.links.find(peer);
    const std::uint64_t far_endpoint = outgoing->second.far_endpoint;
    const PeerId far_peer = outgoing->second.far_peer;
    hub_->move_writes(near, peer);
    if (near.links.contains(peer)) hub_->move_writes(hub_->endpoints_.at(far_endpoint), far_peer);
  }
  hub_->expire(near);
  return near.inbox.take(out);
}

bool LoopbackFabric::arm() {
  const std::lock_guard lock(hub_->mutex_);
  auto& near = self();
  if (!near.inbox.empty()) return false;
  for (const auto& [peer, link] : near.links) {
    const auto& far = hub_->endpoints_.at(link.far_endpoint);
    if (!link.queue.empty() || !far.links.at(link.far_peer).queue.empty()) return false;
  }
  std::uint64_t rung = 0;
  // Empties the bell of earlier rings; EAGAIN when there were none.
  [[maybe_unused]] const ssize_t got = ::read(bell_, &rung, sizeof rung);
  near.armed = true;
  return true;
}

FabricInfo LoopbackFabric::describe() const {
  const std::lock_guard lock(hub_->mutex_);
  FabricInfo info;
  info.provider = info.fabric = info.domain = info.endpoint = "loopback";
  info.address = address();
  info.max_write_bytes = SIZE_MAX;
  info.write_queue = kQueue;
  info.refused_peers = self().refused;
  return info;
}

}  // namespace railhead::fabric
