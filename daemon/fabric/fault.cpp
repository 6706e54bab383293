#include "daemon/fabric/fault.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "daemon/fabric/checks.hpp"

namespace railhead::fabric {
namespace {

constexpr std::size_t kBatch = 64;

}  // namespace

FaultFabric::FaultFabric(std::unique_ptr<Fabric> inner, const FaultConfig& config)
    : inner_(std::move(inner)),
      config_(config),
      random_(config.seed),
      write_queue_(inner_->describe().write_queue),
      held_(config.delay, config.reorder),
      late_(config.delay, config.reorder) {}

bool FaultFabric::chance(double share) {
  return share > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < share;
}

Result<RegionId> FaultFabric::register_memory(void* address, std::size_t bytes) {
  auto region = inner_->register_memory(address, bytes);
  if (region) region_bytes_[*region] = bytes;
  return region;
}

Result<void> FaultFabric::deregister(RegionId region) {
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (held_.at(i).local == region) return region_busy(region, held_.size());
  }
  auto done = inner_->deregister(region);
  if (done) region_bytes_.erase(region);
  return done;
}

Result<PeerId> FaultFabric::expect_peer(const Token& token, Deadline deadline) {
  auto peer = inner_->expect_peer(token, deadline);
  if (peer) peers_[*peer].token = token;
  return peer;
}

Result<PeerId> FaultFabric::open_peer(const std::string& address, const Token& token, Deadline deadline) {
  auto peer = inner_->open_peer(address, token, deadline);
  if (peer) peers_[*peer].token = token;
  return peer;
}

void FaultFabric::close_peer(PeerId peer) {
  inner_->close_peer(peer);
  fail_held(peer, closed_here(peer));
  late_.take_all([peer](const Event& event) { return event.peer == peer; });
  events_.forget_peer(peer);
  peers_.erase(peer);
}

Result<PostState> FaultFabric::post_write(const Write& write) {
  const auto found = peers_.find(write.peer);
  if (found == peers_.end() || !found->second.up || found->second.dropping) return not_up(write.peer);
  // A bad write is refused at the call, as below, also when it would be held.
  const auto region = region_bytes_.find(write.local);
  if (region == region_bytes_.end()) return unknown_region(write.local);
  if (auto checked = check_source(write, region->second); !checked) return fail(checked.error());
  if (held_.size() >= write_queue_) return PostState::again;
  ++writes_;
  note_fault(held_.add(write, polls_, random_));
  note_fault(writes_ == config_.fail_nth || writes_ == config_.drop_after);
  if (writes_ == config_.fail_nth) {
    drop(write.peer, {Code::peer_lost, "write " + std::to_string(writes_) + " to " + name_of(write.peer) +
                                           " failed: EIO, injected by fail_nth"});
  } else if (writes_ == config_.drop_after) {
    release_writes();
    drop(write.peer, {Code::peer_lost, name_of(write.peer) + " was lost after " + std::to_string(writes_) +
                                           " writes: ECONNRESET, injected by drop_after"});
  } else {
    release_writes();
  }
  return PostState::posted;
}

void FaultFabric::release_writes() {
  while (config_.slow == 0 || budget_ > 0) {
    const auto index = held_.pick(polls_, random_);
    // A repeated write needs room for both copies, back to back: without it the whole write waits.
    if (!index || posted_.size() + 2 > write_queue_) return;
    if (!send(held_.take(*index))) return;
  }
}

// False when the inner queue is full.
bool FaultFabric::send(const Write& write) {
  Write inner = write;
  inner.context = next_context_++;
  const int copies = chance(config_.resend) ? 2 : 1;
  Posted posted{write.peer, write.context, 0, {}};
  Status refused;
  for (int copy = 0; copy < copies; ++copy) {
    const auto state = inner_->post_write(inner);
    if (!state) refused = state.error();
    if (!state || *state == PostState::again) break;
    ++posted.copies;
  }
  note_fault(posted.copies > 1);
  if (posted.copies > 0) {
    posted_[inner.context] = posted;
    ++peers_[write.peer].outstanding;
    budget_ -= static_cast<std::int64_t>(write.bytes);
  } else if (!refused.ok()) {
    events_.write_failed(write.peer, write.context, std::move(refused));
  } else {
    held_.put_back(write);
    return false;
  }
  return true;
}

void FaultFabric::release_immediates() {
  while (const auto index = late_.pick(polls_, random_)) events_.push(late_.take(*index));
}

std::size_t FaultFabric::poll(std::span<Event> out) {
  ++polls_;
  // What a slowed rail did not use is lost, as on a wire: an idle time does not pay for a burst.
  if (config_.slow) budget_ = std::min(budget_, std::int64_t{0}) + static_cast<std::int64_t>(config_.slow);
  release_writes();
  std::array<Event, kBatch> batch;
  const std::size_t count = inner_->poll(batch);
  for (std::size_t i = 0; i < count; ++i) handle(std::move(batch[i]));
  release_immediates();
  return events_.take(out);
}

void FaultFabric::handle(Event event) {
  switch (event.kind) {
    case Event::Kind::write_done:
    case Event::Kind::write_failed: end_copy(event); return;
    case Event::Kind::immediate:
      if (chance(config_.dup)) {
        note_fault(true);
        late_.add(event, polls_, random_);
      }
      note_fault(late_.add(std::move(event), polls_, random_));
      return;
    case Event::Kind::peer_up:
      peers_.at(event.peer).up = true;
      events_.push(std::move(event));
      return;
    case Event::Kind::peer_down: finish_peer(event.peer, std::move(event.status)); return;
  }
}

void FaultFabric::end_copy(const Event& event) {
  const auto found = posted_.find(event.context);
  if (found == posted_.end()) return;
  Posted& posted = found->second;
  if (event.kind == Event::Kind::write_failed) posted.status = event.status;
  if (--posted.copies > 0) return;
  const auto peer = peers_.find(posted.peer);
  if (posted.status.ok()) {
    events_.write_done(posted.peer, posted.context);
  } else {
    const bool injected = peer != peers_.end() && peer->second.dropping;
    events_.write_failed(posted.peer, posted.context, injected ? peer->second.why : posted.status);
  }
  const PeerId id = posted.peer;
  posted_.erase(found);
  if (peer == peers_.end()) return;
  if (--peer->second.outstanding == 0 && peer->second.dropping) finish_peer(id, peer->second.why);
}

// Whatever had arrived from the peer is delivered, whatever was not sent fails, then the peer is gone.
void FaultFabric::finish_peer(PeerId peer, Status why) {
  for (Event& event : late_.take_all([peer](const Event& held) { return held.peer == peer; })) {
    events_.push(std::move(event));
  }
  fail_held(peer, why);
  events_.peer_down(peer, peers_.at(peer).token, std::move(why));
  peers_.erase(peer);
}

void FaultFabric::fail_held(PeerId peer, const Status& why) {
  for (const Write& write : held_.take_all([peer](const Write& held) { return held.peer == peer; })) {
    events_.write_failed(peer, write.context, why);
  }
}

void FaultFabric::drop(PeerId peer, Status why) {
  Peer& state = peers_.at(peer);
  inner_->close_peer(peer);
  fail_held(peer, why);
  state.dropping = true;
  state.why = why;
  if (state.outstanding == 0) finish_peer(peer, std::move(why));
}

bool FaultFabric::arm() {
  return held_.empty() && late_.empty() && events_.empty() && inner_->arm();
}

FabricInfo FaultFabric::describe() const {
  FabricInfo info = inner_->describe();
  info.faults = config_.to_string();
  info.injected = injected_;
  return info;
}

}  // namespace railhead::fabric
