// The end of a group: ranks that leave or die, aborts, lost hosts; freeze, poison, quarantine, withdrawal.
#include <algorithm>
#include <utility>

#include "daemon/group/control_words.hpp"
#include "daemon/group/coordinator.hpp"
#include "daemon/group/local_group.hpp"

namespace railhead::daemon {
namespace {

using namespace std::chrono_literals;

// How long the ranks of this host wait for the other daemons' answers before they are told: death is to be known in
// milliseconds, the common last operation is a courtesy.
constexpr auto kFreezeGrace = 50ms;
constexpr auto kQuietLook = 100ms;
constexpr auto kDrainLook = 20ms;

}  // namespace

std::string LocalGroup::who(std::uint32_t rank) const {
  const auto found = members_.find(rank);
  const std::string process = found == members_.end() ? "" : " (" + found->second.client.process.name() + ")";
  return "rank " + std::to_string(rank) + process;
}

// Everything the rank published is complete: nothing is half written, others may finish what it took part in.
bool LocalGroup::between_operations(std::uint32_t rank) const {
  const std::uint32_t local = shape_->local_of(rank);
  // acquire: what was published before the death is visible.
  return ipc::load_acquire(segment_.live(local).planned) <= segment_.completed(local);
}

// The last operation that any rank can have completed: one is complete only when every rank has published it.
std::uint64_t LocalGroup::published_by_all() const {
  std::uint64_t least = UINT64_MAX;
  for (const auto& [rank, m] : members_) {
    // acquire: who completed an operation had seen it published, by a release that follows this word.
    least = std::min(least, ipc::load_acquire(segment_.live(shape_->local_of(rank)).planned));
  }
  return least;
}

std::uint64_t LocalGroup::completed_here() const {
  std::uint64_t least = UINT64_MAX;
  for (const auto& [rank, m] : members_) {
    if (m.present) least = std::min(least, segment_.completed(shape_->local_of(rank)));
  }
  return least;
}

void LocalGroup::leave(std::uint32_t rank) {
  Member* const m = member(rank);
  if (m == nullptr) return;
  if (m->present && state_ == State::running && !frozen_) {
    if (between_operations(rank)) {
      m->present = false;
      soften(rank, "closed the group");
    } else {
      lost(rank, "closed the group in the middle of an operation");
    }
  } else if (m->present && state_ != State::ended && state_ != State::running) {
    lost(rank, "left the group");
  }
  if (Member* const still = member(rank); still != nullptr) {
    still->present = false;
    still->fenced = true;  // its library has stopped stepping
    still->arena.clear();
  }
  release_quiet();
  close_rails_if_done();
  around_.changed();
}

void LocalGroup::lost(std::uint32_t rank, const std::string& how) {
  Member* const m = member(rank);
  if (m == nullptr || !m->present) return;
  m->present = false;
  const std::string text = who(rank) + " lost: " + how;
  switch (state_) {
    case State::joining: {
      const auto answer = std::move(m->mapped);
      members_.erase(rank);
      to_coordinator({id_.key, WithdrawMessage{rank, {Code::rank_lost, text}}});
      if (answer) answer(fail(Code::rank_lost, text));
      if (members_.empty()) hold_coordinator(false);
      break;
    }
    case State::attaching:
    case State::wiring: to_coordinator({id_.key, WithdrawMessage{rank, {Code::rank_lost, text}}}); break;
    case State::running:
      if (frozen_) break;
      if (between_operations(rank)) {
        soften(rank, how + " (" + m->client.process.name() + ")");
      } else {
        harden({Code::rank_lost, text}, static_cast<std::uint16_t>(rank));
      }
      break;
    case State::ended: break;
  }
  close_rails_if_done();
  around_.changed();
}

void LocalGroup::fenced(std::uint32_t rank) {
  Member* const m = member(rank);
  if (m == nullptr) return;
  m->fenced = true;
  release_quiet();
  around_.changed();
}

void LocalGroup::soften(std::uint32_t rank, const std::string& how) {
  const LeftMessage left{rank, segment_.completed(shape_->local_of(rank)), how};
  if (!believable(left)) return;
  to_others([&] { return GroupMessage{id_.key, left}; });
  note_left(left);
}

void LocalGroup::on_left(const LeftMessage& left) {
  if (state_ == State::running && believable(left)) note_left(left);
}

// The count is a word of the rank that left. The others would wait for ever for one that they cannot reach: the group
// ends at once instead.
bool LocalGroup::believable(const LeftMessage& left) {
  const std::uint64_t most = published_by_all();
  if (left.completed <= most) return true;
  harden({Code::rank_lost, who(left.rank) + " lost: " + left.reason + "; its count of completed operations says " +
                               std::to_string(left.completed) + ", the ranks of this host have published " +
                               std::to_string(most) + ": its words were overwritten"},
         static_cast<std::uint16_t>(left.rank));
  return false;
}

void LocalGroup::note_left(const LeftMessage& left) {
  log_event(
      log::Level::info,
      "rank " + std::to_string(left.rank) + " left after op " + std::to_string(left.completed) + ": " + left.reason,
      left.rank);
  has_left_[left.rank] = true;
  const bool first = !left_;
  if (first) left_ = left;
  segment_.set_left(left.rank, left.completed, first ? left_text() : std::string());
  left_->completed = std::max(left_->completed, left.completed);
  end_when_drained();
}

// No later operation can complete without the rank that left. Each daemon lets its own ranks finish what that rank took
// part in, then ends the group here: survivors need not run into it to learn of it, and nothing is kept for the absent.
void LocalGroup::end_when_drained() {
  if (state_ != State::running || frozen_) return;
  const bool drained = std::all_of(members_.begin(), members_.end(), [&](const auto& entry) {
    return !entry.second.present || segment_.completed(shape_->local_of(entry.first)) >= left_->completed;
  });
  if (!drained) {
    if (std::exchange(looking_for_drained_, true)) return;
    around_.after(kDrainLook, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->looking_for_drained_ = false;
      self->end_when_drained();
    });
    return;
  }
  for (const auto& [rank, m] : members_) segment_.freeze(shape_->local_of(rank));
  drain_rails_ = true;
  finish_poisoned({Code::rank_lost, left_text()}, static_cast<std::uint16_t>(left_->rank));
}

std::string LocalGroup::left_text() const {
  return "rank " + std::to_string(left_->rank) + " left the group after op " + std::to_string(left_->completed) + ": " +
         left_->reason;
}

void LocalGroup::abort(std::uint32_t rank, const Status& reason) {
  if (member(rank) == nullptr || state_ != State::running) return;
  // A rank that ran into the absence of another knows who, we know why, too.
  if (left_ && reason.code() == Code::rank_lost) {
    return harden({Code::rank_lost, left_text()}, static_cast<std::uint16_t>(left_->rank));
  }
  harden({reason.code(), reason.message().substr(0, kMostReason)}, static_cast<std::uint16_t>(rank));
}

void LocalGroup::harden(const Status& reason, std::uint16_t rank) {
  if (frozen_ || state_ != State::running) return;
  frozen_ = true;
  freeze_reason_ = reason;
  freeze_rank_ = rank;
  for (const auto& [r, m] : members_) segment_.freeze(shape_->local_of(r));
  frozen_at_[domain_] = completed_here();
  to_others([&] { return GroupMessage{id_.key, FrozenMessage{reason, rank, *frozen_at_[domain_]}}; });
  const bool all = std::all_of(frozen_at_.begin(), frozen_at_.end(), [](const auto& at) { return at.has_value(); });
  if (all) return poison_now();
  around_.after(kFreezeGrace, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->poison_now();
  });
}

void LocalGroup::on_frozen(std::uint16_t domain, const FrozenMessage& frozen) {
  if (state_ != State::running) return;
  frozen_at_[domain] = frozen.completed;
  harden(frozen.reason, static_cast<std::uint16_t>(frozen.rank));
  if (state_ != State::running) return;
  const bool all = std::all_of(frozen_at_.begin(), frozen_at_.end(), [](const auto& at) { return at.has_value(); });
  if (all) poison_now();
}

void LocalGroup::poison_now() {
  if (poisoned_ || state_ != State::running) return;
  poisoned_ = true;
  std::uint64_t least = UINT64_MAX;
  for (const auto& at : frozen_at_) {
    if (at) least = std::min(least, *at);
  }
  std::string text = freeze_reason_.message();
  if (least != UINT64_MAX) text += "; last operation complete on all survivors: " + std::to_string(least);
  log_event(log::Level::warning, "the group ended: " + text);
  finish_poisoned({freeze_reason_.code(), text}, freeze_rank_);
}

void LocalGroup::finish_poisoned(const Status& reason, std::uint16_t rank) {
  poison_ = {reason.code(), rank};
  segment_.set_poison(poison_, reason.message());
  finish(reason);
}

// A rank can overwrite the word, and others of its host then miss the end: as long as somebody may look, it is put
// back.
void LocalGroup::keep_poisoned() {
  if (poison_.code == Code::ok || segment_.poison().encode() == poison_.encode()) return;
  segment_.set_poison(poison_, end_.message());
}

void LocalGroup::rails_failed(std::uint16_t domain, std::uint16_t rank, const Status& reason) {
  if (state_ == State::wiring) return rails_connected(domain, fail(reason));
  if (reason.code() == Code::protocol) return harden(reason, rank);
  std::vector<std::uint32_t> ranks(shape_->ranks_of(domain).begin(), shape_->ranks_of(domain).end());
  // Ranks that left need no path any more.
  const bool wanted = std::any_of(ranks.begin(), ranks.end(), [&](std::uint32_t r) { return !has_left_[r]; });
  if (!wanted) return;
  harden({Code::peer_lost, "the path to ranks " + rank_list(ranks) + " on host " +
                               daemons_[domain].host.hex().substr(0, 8) + " failed: " + reason.message()},
         ranks.empty() ? ipc::Poison::kNoRank : static_cast<std::uint16_t>(ranks.front()));
}

void LocalGroup::peer_lost(const DaemonEntry& peer, const Status& reason) {
  const auto domain = domain_of_host(peer.host);
  if (!domain) {
    if (peer == DaemonEntry{id_.host, id_.endpoint} && state_ != State::running && state_ != State::ended) {
      finish(
          {Code::peer_lost, "the coordinator of the group was lost: " + reason.message() + "; make a new unique id"});
    }
    return;
  }
  if (daemons_[*domain] != peer || domain_lost_[*domain]) return;
  domain_lost_[*domain] = true;
  if (state_ == State::running) {
    frozen_at_[*domain] = UINT64_MAX;  // no survivor there
    rails_failed(*domain, ipc::Poison::kNoRank, {Code::peer_lost, "its daemon was lost: " + reason.message()});
  } else if (state_ != State::ended) {
    const Status lost(Code::peer_lost, "the daemon of rank " + std::to_string(shape_->ranks_of(*domain).front()) +
                                           " was lost while the group was being made: " + reason.message());
    peer.host == id_.host ? finish(lost) : cannot_take_part(lost);
  }
  if (frozen_ && state_ == State::running &&
      std::all_of(frozen_at_.begin(), frozen_at_.end(), [](const auto& at) { return at.has_value(); })) {
    poison_now();
  }
}

void LocalGroup::end_all(const Status& reason) {
  if (state_ == State::running) {
    harden(reason, ipc::Poison::kNoRank);
    poison_now();
  } else if (state_ != State::ended) {
    finish(reason);
  }
}

void LocalGroup::finish(const Status& reason) {
  if (state_ == State::ended) return;
  enter(State::ended);
  end_ = reason;
  hold_coordinator(false);
  for (auto& [rank, m] : members_) {
    if (auto answer = std::exchange(m.mapped, nullptr); answer) {
      // Its join failed: it never became a member, and will not leave.
      m.present = false;
      m.fenced = true;
      answer(fail(reason));
    }
    if (auto answer = std::exchange(m.attached, nullptr); answer) answer(fail(reason));
  }
  if (!rails_in_use_) let_go_links();
  release_quiet();
  close_rails_if_done();
  around_.changed();
}

// Quarantine: descriptors of an ended epoch are let go only when no local writer can store to that memory any more.
void LocalGroup::release_quiet() {
  if (state_ != State::ended) return;
  const bool quiet = std::all_of(members_.begin(), members_.end(), [&](const auto& entry) {
    const Member& m = entry.second;
    if (is_gone(m)) return true;
    // acquire: pairs with the release by which the rank said so.
    return ipc::load_acquire(segment_.live(shape_->local_of(entry.first)).quiet) != 0;
  });
  if (quiet) {
    for (auto& [rank, m] : members_) m.arena.clear();
    return;
  }
  keep_poisoned();
  if (std::exchange(looking_for_quiet_, true)) return;
  around_.after(kQuietLook, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->looking_for_quiet_ = false;
    self->release_quiet();
  });
}

void LocalGroup::close_rails_if_done() {
  if (!rails_in_use_ || rails_closing_) return;
  if (state_ != State::ended) return;
  rails_closing_ = true;
  proxy().close_group(id_.key, drain_rails_ ? CloseMode::drain : CloseMode::abandon);
}

void LocalGroup::rails_quiesced(std::uint16_t domain, std::vector<std::pair<std::uint16_t, std::uint64_t>> posted) {
  if (!domain_lost_[domain]) around_.send(daemons_[domain], {id_.key, QuiescedMessage{std::move(posted)}});
}

void LocalGroup::rails_closed() {
  rails_in_use_ = false;
  let_go_links();
  around_.changed();
}

bool LocalGroup::empty() const {
  if (rails_in_use_) return false;
  // A rank that was lost may run on (evicted, or writing a core dump) until its process is gone, and is to find the
  // poison there.
  return std::all_of(members_.begin(), members_.end(),
                     [&](const auto& e) { return !e.second.present && is_gone(e.second); });
}

void LocalGroup::take_back_words() {
  segment_ = {};
  take_back(words_);
  for (auto& [rank, m] : members_) take_back(m.rail_words);
}

}  // namespace railhead::daemon
