#include "daemon/group/registry.hpp"

#include <algorithm>
#include <utility>

namespace railhead::daemon {
namespace {

// Joins that come together are told of in one message.
constexpr std::chrono::milliseconds kAnnounceAfter{100};
// Ranks start at different times: one that comes after a refusal learns the reason, too.
constexpr std::chrono::minutes kRememberRefusal{5};

}  // namespace

Result<UniqueId> GroupRegistry::make_id(std::uint32_t session) {
  forget_coordinators();
  const auto most = static_cast<std::size_t>(around_.config->limits.groups);
  if (coordinators_.size() >= most) {
    // The oldest id that nobody joined, or that was refused, makes room.
    auto oldest = coordinators_.end();
    for (auto it = coordinators_.begin(); it != coordinators_.end(); ++it) {
      if ((it->second.coordinator->unused() || it->second.coordinator->refused()) &&
          (oldest == coordinators_.end() || it->second.made < oldest->second.made)) {
        oldest = it;
      }
    }
    if (oldest == coordinators_.end()) {
      return fail(Code::limit_exceeded, std::to_string(coordinators_.size()) +
                                            " groups are being made, limits.groups is " + std::to_string(most));
    }
    coordinators_.erase(oldest);
  }
  auto key = random_bytes();
  auto secret = random_bytes();
  if (!key || !secret) return fail(key ? secret.error() : key.error());
  UniqueId id{*key, *secret, around_.host, around_.endpoint};
  auto coordinator = std::make_unique<Coordinator>(
      id.key, id.secret, [this](const DaemonEntry& to, GroupMessage message) { send(to, std::move(message)); });
  Coordinated& coordinated = coordinators_[id.key];
  coordinated.coordinator = std::move(coordinator);
  coordinated.made = std::chrono::steady_clock::now();
  coordinated.session = session;
  watch_joining(id.key);
  return id;
}

void GroupRegistry::session_over(std::uint32_t session) {
  std::erase_if(coordinators_, [&](const auto& entry) {
    return entry.second.session == session && entry.second.coordinator->unused();
  });
}

void GroupRegistry::on_join(Coordinated& coordinated, const mesh::HostId& from, const JoinMessage& join) {
  Coordinator& coordinator = *coordinated.coordinator;
  const bool first = coordinator.unused();
  const bool collecting = coordinator.waits_for_ranks();
  coordinator.on_join(from, join);
  const bool last = collecting && !coordinator.waits_for_ranks();
  if (first || last) coordinated.waits_since = std::chrono::steady_clock::now();
}

// Says every few seconds who is missing, and gives up at the configured limit, until the group runs.
void GroupRegistry::watch_joining(const GroupKey& key) {
  const std::int64_t limit = around_.config->join_timeout_s;
  const std::int64_t log = around_.config->join_log_s;
  around_.after(std::chrono::seconds(limit == 0 ? log : std::min(log, limit)), [this, key] {
    const auto found = coordinators_.find(key);
    if (found == coordinators_.end() || found->second.coordinator->finished()) return;
    look_at_joining(key, found->second);
    watch_joining(key);
  });
}

void GroupRegistry::look_at_joining(const GroupKey& key, Coordinated& coordinated) {
  Coordinator& coordinator = *coordinated.coordinator;
  const std::string rest = coordinator.waits_for();
  if (rest.empty() || !coordinated.waits_since) return;
  const auto waited =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - *coordinated.waits_since);
  around_.log->info("group " + short_name(key) + " has waited " + std::to_string(waited.count()) + " s for " + rest);
  coordinator.announce_missing();
  const std::int64_t limit = around_.config->join_timeout_s;
  if (limit == 0 || waited.count() < limit) return;
  coordinator.refuse({Code::timeout, "after " + std::to_string(waited.count()) + " s the group still waited for " +
                                         rest + " (join_timeout_s is " + std::to_string(limit) + ")"});
}

// Tells everybody who is still missing after a join: a rank whose own time limit ends names them.
void GroupRegistry::announce_soon(const GroupKey& key) {
  const auto found = coordinators_.find(key);
  if (found == coordinators_.end() || !found->second.coordinator->waits_for_ranks()) return;
  if (std::exchange(found->second.announcing, true)) return;
  around_.after(kAnnounceAfter, [this, key] {
    const auto again = coordinators_.find(key);
    if (again == coordinators_.end()) return;
    again->second.announcing = false;
    again->second.coordinator->announce_missing();
  });
}

Result<std::shared_ptr<LocalGroup>> GroupRegistry::open(const UniqueId& id, const ipc::GroupParams& params) {
  if (auto known = find(id.key)) {
    if (known->id().secret == id.secret) return known;
    return fail(Code::permission, "the secret of the unique id is wrong");
  }
  const auto most = static_cast<std::size_t>(around_.config->limits.groups);
  if (groups_.size() >= most) {
    return fail(Code::limit_exceeded,
                std::to_string(groups_.size()) + " groups on this host, limits.groups is " + std::to_string(most));
  }
  GroupSurroundings around;
  around.host = around_.host;
  around.endpoint = around_.endpoint;
  around.log = around_.log;
  around.proxies = around_.proxies;
  around.send = [this](const DaemonEntry& to, GroupMessage message) { send(to, std::move(message)); };
  around.retain = around_.retain;
  around.after = around_.after;
  around.quota_left = [this] { return quota_left(); };
  around.changed = [this] {
    if (std::exchange(sweeping_, true)) return;
    around_.post([this] {
      sweeping_ = false;
      sweep();
    });
  };
  auto group = std::make_shared<LocalGroup>(id, params, std::move(around));
  groups_.emplace(id.key, group);
  return group;
}

std::shared_ptr<LocalGroup> GroupRegistry::find(const GroupKey& key) const {
  const auto found = groups_.find(key);
  return found == groups_.end() ? nullptr : found->second;
}

void GroupRegistry::send(const DaemonEntry& to, GroupMessage message) {
  if (to.host == around_.host) {
    // Later, so that nobody is called back from inside its own call.
    around_.post([this, message = std::move(message)]() mutable { on_message(around_.host, std::move(message)); });
    return;
  }
  if (const Status sent = around_.mesh_send(to, message); !sent.ok()) {
    around_.post([this, to, sent] { on_peer_lost(to, sent); });
  }
}

void GroupRegistry::on_message(const mesh::HostId& from, GroupMessage message) {
  const auto coordinated = coordinators_.find(message.group);
  Coordinator* const coordinator = coordinated == coordinators_.end() ? nullptr : coordinated->second.coordinator.get();
  if (const auto* join = std::get_if<JoinMessage>(&message.body)) {
    if (coordinator != nullptr) {
      on_join(coordinated->second, from, *join);
      return announce_soon(message.group);
    }
    return send({from, join->endpoint},
                {message.group, RefusedMessage{{Code::invalid_usage,
                                                "this daemon does not know the unique id: its group was made or "
                                                "refused already, or the daemon was restarted; make a new id"}}});
  }
  if (const auto* withdraw = std::get_if<WithdrawMessage>(&message.body)) {
    if (coordinator != nullptr) coordinator->on_withdraw(from, *withdraw);
    return;
  }
  if (const auto* attaching = std::get_if<AttachingMessage>(&message.body)) {
    if (coordinator != nullptr) coordinator->on_attaching(from, attaching->ranks);
    return;
  }
  if (std::holds_alternative<WiredMessage>(message.body)) {
    if (coordinator != nullptr) coordinator->on_wired(from);
    return;
  }
  if (const auto group = find(message.group)) group->on_message(from, std::move(message));
}

void GroupRegistry::on_peer_lost(const DaemonEntry& peer, const Status& reason) {
  for (auto& [key, coordinated] : coordinators_) coordinated.coordinator->on_lost(peer, reason.message());
  const auto groups = groups_;
  for (const auto& [key, group] : groups) group->peer_lost(peer, reason);
}

void GroupRegistry::end_all(const Status& reason) {
  for (auto& [key, coordinated] : coordinators_) {
    if (!coordinated.coordinator->finished()) coordinated.coordinator->refuse(reason);
  }
  const auto groups = groups_;
  for (const auto& [key, group] : groups) group->end_all(reason);
}

void GroupRegistry::sweep() {
  std::erase_if(groups_, [](const auto& entry) {
    if (!entry.second->empty()) return false;
    // Its clients may keep the group itself alive, with a capability.
    entry.second->take_back_words();
    return true;
  });
  forget_coordinators();
  around_.changed();
}

// A committed group lives with its members; a refused one is remembered for those who come late.
void GroupRegistry::forget_coordinators() {
  const auto now = std::chrono::steady_clock::now();
  for (auto it = coordinators_.begin(); it != coordinators_.end();) {
    Coordinated& coordinated = it->second;
    const bool refused = coordinated.coordinator->refused();
    if (refused && !coordinated.refused_at) coordinated.refused_at = now;
    const bool over = refused ? now - *coordinated.refused_at >= kRememberRefusal : coordinated.coordinator->finished();
    it = over ? coordinators_.erase(it) : std::next(it);
  }
}

std::uint64_t GroupRegistry::quota_left() const {
  std::uint64_t used = 0;
  for (const auto& [key, group] : groups_) used += group->control_bytes();
  const auto most = static_cast<std::uint64_t>(around_.config->limits.control_bytes);
  return most > used ? most - used : 0;
}

}  // namespace railhead::daemon
