#include "daemon/proxy/engine.hpp"

#include <algorithm>
#include <utility>

namespace railhead::daemon::rail {

Engine::Engine(std::unique_ptr<fabric::Fabric> fabric, const ProxyConfig& config, ProxyEvents events)
    : fabric_(std::move(fabric)),
      events_(std::move(events)),
      peers_(*fabric_, config.host, config.rings_per_peer),
      poster_(*fabric_),
      submissions_(poster_),
      closing_(*fabric_, peers_) {}

// Writes end when their connection does; then nothing refers to the groups' memory any more.
Engine::~Engine() {
  peers_.close_all();
  while (fabric_->poll(batch_) > 0) {
  }
}

bool Engine::step() {
  bool any = false;
  for (const auto& group : groups_) {
    if (step_submissions(*group)) any = true;
  }
  if (poll_fabric()) any = true;
  for (const auto& [host, peer] : peers_.all()) {
    if (!peer->queue.empty() && poster_.retry(*peer)) any = true;
  }
  for (const auto& group : groups_) {
    if (!group->waiting.empty() && arrivals_.step(*group)) any = true;
  }
  if (closing_groups_ > 0 && step_closing()) any = true;
  return any;
}

bool Engine::must_look_soon() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const auto& group) { return !group->waiting.empty(); }) ||
         std::any_of(peers_.all().begin(), peers_.all().end(),
                     [](const auto& item) { return !item.second->queue.empty(); });
}

bool Engine::poll_fabric() {
  const std::size_t count = fabric_->poll(batch_);
  for (std::size_t i = 0; i < count; ++i) handle(batch_[i]);
  return count > 0;
}

void Engine::handle(const fabric::Event& event) {
  switch (event.kind) {
    case fabric::Event::Kind::write_done: poster_.done(event.context); return;
    case fabric::Event::Kind::write_failed: poster_.failed(event.context, event.status); return;
    case fabric::Event::Kind::immediate:
      if (Peer* const peer = peers_.find(event.peer)) arrivals_.immediate(*peer, event.immediate);
      return;
    case fabric::Event::Kind::peer_up: peers_.on_up(event.peer); return;
    case fabric::Event::Kind::peer_down:
      peers_.on_down(event.peer, event.status);
      peers_.forget_unused();
      return;
  }
}

bool Engine::step_closing() {
  const std::size_t before = closing_groups_;
  std::erase_if(groups_, [this](const auto& group) {
    if (!group->closing || !closing_.step(*group)) return false;
    --closing_groups_;
    return true;
  });
  if (closing_groups_ == before) return false;
  peers_.forget_unused();
  return true;
}

void Engine::open(GroupRails rails) {
  const GroupKey key = rails.key;
  if (find(key) != nullptr) {
    events_.opened(key, fail(Code::internal, "this group is open already"));
    return;
  }
  auto group = Group::create(std::move(rails), events_);
  if (!group) {
    events_.opened(key, fail(group.error()));
    return;
  }
  auto offers = enrol(**group, *fabric_, peers_);
  if (offers) {
    groups_.push_back(std::move(*group));
  } else {
    withdraw(**group, *fabric_);
  }
  events_.opened(key, std::move(offers));
}

void Engine::connect(const GroupKey& key, std::uint16_t domain, const WireOffer& offer) {
  Path* const path = find_path(key, domain);
  if (path == nullptr || path->group->closing) return;
  if (path->state != Path::State::opened) {
    events_.connected(key, domain, fail(Code::protocol, "a second offer for domain " + std::to_string(domain)));
    return;
  }
  if (auto accepted = accept(*path, offer); !accepted) {
    events_.connected(key, domain, fail(accepted.error()));
    return;
  }
  peers_.connect(*path, offer);
}

void Engine::close(const GroupKey& key, CloseMode mode) {
  Group* const group = find(key);
  if (group == nullptr) {
    events_.closed(key);
  } else if (!group->closing) {
    if (mode == CloseMode::drain && !group->stopped) {
      begin_draining(*group);
    } else {
      begin_closing(*group, CloseMode::abandon);
    }
  }
}

// What was submitted until now is taken, no more than a ring holds: a rank that goes on submitting holds up nobody.
void Engine::begin_draining(Group& group) {
  group.draining = true;
  for (Rail& rail : group.rails) {
    rail.may_take = ipc::RailWordsLayout(group.shape(), rail.rank).submit_capacity();
  }
}

void Engine::begin_closing(Group& group, CloseMode mode) {
  closing_.begin(group, mode);
  ++closing_groups_;
}

// A draining group closes once its ranks' submissions have run dry and nothing of it waits to be posted.
bool Engine::step_submissions(Group& group) {
  const bool any = !group.stopped && submissions_.step(group);
  if (any || !group.draining || group.closing) return any;
  const bool held = std::any_of(group.rails.begin(), group.rails.end(), [](const Rail& rail) { return rail.held; });
  if (!group.stopped && (held || Poster::has_queued(group))) return false;
  begin_closing(group, group.stopped ? CloseMode::abandon : CloseMode::drain);
  return true;
}

void Engine::peer_quiesced(const GroupKey& key, std::uint16_t domain, Posted posted) {
  if (Path* const path = find_path(key, domain)) path->peer_posted = std::move(posted);
}

Group* Engine::find(const GroupKey& key) const {
  const auto found =
      std::find_if(groups_.begin(), groups_.end(), [&key](const auto& group) { return group->key() == key; });
  return found == groups_.end() ? nullptr : found->get();
}

Path* Engine::find_path(const GroupKey& key, std::uint16_t domain) const {
  Group* const group = find(key);
  if (group == nullptr || domain >= group->paths.size() || group->paths[domain].peer == nullptr) return nullptr;
  return &group->paths[domain];
}

}  // namespace railhead::daemon::rail
