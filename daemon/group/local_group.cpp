// The making of a group; its end is in local_group_end.cpp.
#include "daemon/group/local_group.hpp"

#include <algorithm>
#include <utility>

#include "daemon/group/control_words.hpp"
#include "daemon/group/coordinator.hpp"
#include "ipc/layout/align.hpp"
#include "ipc/layout/rail_words.hpp"
#include "ipc/layout/rings.hpp"

namespace railhead::daemon {
namespace {

std::optional<std::uint16_t> find_host(const std::vector<DaemonEntry>& daemons, const mesh::HostId& host) {
  for (std::size_t d = 0; d < daemons.size(); ++d) {
    if (daemons[d].host == host) return static_cast<std::uint16_t>(d);
  }
  return std::nullopt;
}

// A refused call's sentence, as it is kept and passed on.
void shorten(std::string& reason) {
  reason.resize(std::min(reason.size(), LocalGroup::kMostReason));
}

std::uint64_t whole_pages(std::uint64_t bytes) {
  return ipc::align_up(bytes, std::uint64_t{ipc::page_bytes()});
}

}  // namespace

const char* state_name(LocalGroup::State state) noexcept {
  switch (state) {
    case LocalGroup::State::joining: return "joining";
    case LocalGroup::State::attaching: return "attaching";
    case LocalGroup::State::wiring: return "wiring";
    case LocalGroup::State::running: return "running";
    case LocalGroup::State::ended: return "ended";
  }
  return "unknown";
}

LocalGroup::LocalGroup(UniqueId id, ipc::GroupParams params, GroupSurroundings around)
    : id_(std::move(id)), params_(std::move(params)), around_(std::move(around)), generation_(id_.key[0] & 63U) {}

LocalGroup::~LocalGroup() = default;

LocalGroup::Member* LocalGroup::member(std::uint32_t rank) {
  const auto found = members_.find(rank);
  return found == members_.end() ? nullptr : &found->second;
}

void LocalGroup::log_event(log::Level level, const std::string& text, std::optional<std::uint32_t> rank) const {
  log::Fields fields;
  const std::string name = short_name(id_.key);
  fields.group = name;
  fields.rank = rank;
  around_.log->write(level, text, fields);
}

void LocalGroup::to_coordinator(GroupMessage message) {
  around_.send({id_.host, id_.endpoint}, std::move(message));
}

void LocalGroup::to_others(const std::function<GroupMessage()>& message) {
  for (std::size_t d = 0; d < daemons_.size(); ++d) {
    if (d != domain_ && !domain_lost_[d]) around_.send(daemons_[d], message());
  }
}

std::optional<std::uint16_t> LocalGroup::domain_of_host(const mesh::HostId& host) const {
  return find_host(daemons_, host);
}

void LocalGroup::join(std::uint32_t rank, Client client, const ipc::GroupParams& params,
                      std::function<void(Result<Mapped>)> mapped) {
  const JoinMessage message{rank, id_.secret, around_.endpoint, params,
                            static_cast<std::uint32_t>(around_.proxies.size())};
  if (state_ == State::ended) return mapped(fail(end_));
  if (state_ != State::joining || members_.contains(rank)) {
    mapped(fail(Code::invalid_argument, "rank " + std::to_string(rank) +
                                            " joined this group already; every process needs a rank of its own, every "
                                            "group an id of its own"));
    // The coordinator names it to the others.
    if (state_ == State::joining) to_coordinator({id_.key, message});
    return;
  }
  if (!members_.empty() && members_.begin()->second.client.uid != client.uid) {
    return mapped(fail(Code::permission, "rank " + std::to_string(rank) + " is of uid " + std::to_string(client.uid) +
                                             ", the group's other ranks here are of uid " +
                                             std::to_string(members_.begin()->second.client.uid) +
                                             ": a group is of one user"));
  }
  hold_coordinator(true);
  Member& m = members_[rank];
  m.client = client;
  m.mapped = std::move(mapped);
  to_coordinator({id_.key, message});
}

void LocalGroup::withdraw(std::uint32_t rank) {
  if (member(rank) == nullptr) return;
  lost(rank, "gave up");
}

void LocalGroup::on_message(const mesh::HostId& from, GroupMessage message) {
  const bool from_coordinator = from == id_.host;
  const auto domain = domain_of_host(from);
  if (auto* map = std::get_if<MapMessage>(&message.body); map != nullptr && from_coordinator) {
    on_map(*map);
  } else if (auto* refused = std::get_if<RefusedMessage>(&message.body); refused != nullptr && from_coordinator) {
    on_refused(refused->reason);
  } else if (auto* missing = std::get_if<MissingMessage>(&message.body); missing != nullptr && from_coordinator) {
    missing_ = std::move(missing->ranks);
  } else if (std::holds_alternative<CommitMessage>(message.body) && from_coordinator) {
    on_commit();
  } else if (auto* wire = std::get_if<WireMessage>(&message.body)) {
    if (rails_open_ && domain) {
      on_wire(*domain, std::move(*wire));
    } else if (state_ != State::ended) {
      early_wires_[from] = std::move(*wire);
    }
  } else if (auto* frozen = std::get_if<FrozenMessage>(&message.body); frozen != nullptr && domain) {
    if (state_ == State::wiring) early_ends_.emplace_back(*domain, *frozen);
    on_frozen(*domain, *frozen);
  } else if (auto* left = std::get_if<LeftMessage>(&message.body); left != nullptr && domain) {
    if (left->rank >= params_.ranks || shape_->domain_of(left->rank) != *domain) return;
    if (state_ == State::wiring) early_ends_.emplace_back(*domain, *left);
    on_left(*left);
  } else if (auto* call = std::get_if<RefusedCallMessage>(&message.body); call != nullptr && domain) {
    if (call->rank < params_.ranks && shape_->domain_of(call->rank) == *domain) note_refused(std::move(*call));
  } else if (auto* quiesced = std::get_if<QuiescedMessage>(&message.body); quiesced != nullptr && domain) {
    if (rails_in_use_) {
      proxy().peer_quiesced(id_.key, *domain, std::move(quiesced->posted));
    } else if (state_ != State::ended) {
      early_quiesced_[*domain] = std::move(quiesced->posted);
    }
  }
}

void LocalGroup::on_map(const MapMessage& map) {
  if (state_ != State::joining) return;
  if (!fits(map)) return on_refused({Code::protocol, "the coordinator's map does not fit what was joined"});
  daemons_ = map.daemons;
  domain_ = *domain_of_host(around_.host);
  proxy_index_ = id_.key[15] % map.proxies;
  has_left_.assign(params_.ranks, false);
  shape_ = std::make_shared<const ipc::GroupShape>(params_, ipc::GroupMap{map.epoch, map.domain_of_rank});
  domain_lost_.assign(daemons_.size(), false);
  connected_.assign(daemons_.size(), false);
  connected_[domain_] = true;
  frozen_at_.assign(daemons_.size(), std::nullopt);
  missing_.clear();
  enter(State::attaching);
  holds_links_ = true;
  for (std::size_t d = 0; d < daemons_.size(); ++d) {
    if (d != domain_) around_.retain(daemons_[d], true);
  }
  log_event(log::Level::info, "all " + std::to_string(params_.ranks) + " ranks joined, on " +
                                  std::to_string(daemons_.size()) + " hosts, epoch " + std::to_string(map.epoch));
  for (auto& [rank, m] : members_) {
    if (auto answer = std::exchange(m.mapped, nullptr); answer) answer(Mapped{map.epoch, map.domain_of_rank});
  }
}

// Every rank has a domain, domains are dense and numbered by their lowest rank, our ranks are in ours; we have the
// proxies.
bool LocalGroup::fits(const MapMessage& map) const {
  const auto own = find_host(map.daemons, around_.host);
  if (!own || map.domain_of_rank.size() != params_.ranks) return false;
  if (map.proxies == 0 || map.proxies > around_.proxies.size()) return false;
  std::uint16_t next = 0;
  for (std::uint32_t r = 0; r < params_.ranks; ++r) {
    const std::uint16_t domain = map.domain_of_rank[r];
    if (domain > next || domain >= map.daemons.size()) return false;
    if (domain == next) ++next;
    if ((domain == *own) != members_.contains(r)) return false;
  }
  return next == map.daemons.size();
}

// The link to the coordinator is kept while the group is being made, so that its loss is told.
void LocalGroup::hold_coordinator(bool wanted) {
  if (holds_coordinator_ == wanted || id_.host == around_.host) return;
  holds_coordinator_ = wanted;
  around_.retain({id_.host, id_.endpoint}, wanted);
}

void LocalGroup::let_go_links() {
  if (!std::exchange(holds_links_, false)) return;
  for (std::size_t d = 0; d < daemons_.size(); ++d) {
    if (d != domain_) around_.retain(daemons_[d], false);
  }
}

void LocalGroup::refused(RefusedCallMessage call) {
  if (state_ != State::running) return;
  shorten(call.reason);
  const auto last = refused_calls_.find(call.rank);
  if (last != refused_calls_.end() && last->second == call) return;  // a loop that makes the same call over and over
  to_others([&] { return GroupMessage{id_.key, call}; });
  note_refused(std::move(call));
}

void LocalGroup::note_refused(RefusedCallMessage call) {
  if (state_ != State::running) return;
  shorten(call.reason);
  refused_calls_[call.rank] = std::move(call);
}

std::vector<RefusedCallMessage> LocalGroup::refused_calls() const {
  std::vector<RefusedCallMessage> out;
  if (state_ != State::running) return out;
  for (const auto& [rank, call] : refused_calls_) {
    const bool made_since = !call.planned && segment_.header(rank, call.op).header != nullptr;
    const bool complete = std::any_of(members_.begin(), members_.end(), [&, op = call.op](const auto& member) {
      return segment_.completed(shape_->local_of(member.first)) >= op;
    });
    if (!made_since && !complete) out.push_back(call);
  }
  return out;
}

void LocalGroup::on_refused(const Status& reason) {
  if (state_ == State::running || state_ == State::ended) return;
  log_event(log::Level::warning, "no group: " + reason.message());
  finish(reason);
}

void LocalGroup::attach(std::uint32_t rank, std::optional<ArenaSegment> rail,
                        std::function<void(Result<Attached>)> attached) {
  if (state_ == State::ended) return attached(fail(end_));
  Member* const m = member(rank);
  if (state_ != State::attaching || m == nullptr || m->has_attached) {
    return attached(
        fail(Code::invalid_usage, "rank " + std::to_string(rank) + " attached twice or before its group was mapped"));
  }
  if (auto mapped = map_rail(*m, rank, std::move(rail)); !mapped) return attached(fail(mapped.error()));
  m->has_attached = true;
  m->attached = std::move(attached);
  AttachingMessage rest;
  for (const auto& [other, state] : members_) {
    if (!state.has_attached) rest.ranks.push_back(other);
  }
  const bool all = rest.ranks.empty();
  to_coordinator({id_.key, std::move(rest)});
  if (all) everybody_attached();
}

Result<void> LocalGroup::map_rail(Member& m, std::uint32_t rank, std::optional<ArenaSegment> rail) {
  if (shape_->domains() == 1) return {};
  const std::uint64_t bytes = whole_pages(ipc::RailSegmentLayout(*shape_, rank).bytes());
  if (!rail || rail->kind != ipc::SegmentKind::rail || rail->bytes != bytes) {
    return fail(Code::protocol,
                "rank " + std::to_string(rank) + " must attach a rail segment of " + std::to_string(bytes) + " bytes");
  }
  auto mapped = ipc::Segment::map(std::move(rail->fd), bytes, ipc::Access::read_write, ipc::Prefault::no);
  if (!mapped) return fail(mapped.error());
  // Both writers have it mapped: no further writable mapping, no hole punching under the NIC.
  if (auto frozen = mapped->freeze_writers(); !frozen) return frozen;
  // Only now does "all pages are present" last. A page that is absent would be charged to this daemon when touched.
  if (auto whole = ipc::Segment::verify(mapped->fd(), bytes, ipc::frozen_seals()); !whole) return whole;
  if (auto present = mapped->prefault(); !present) return present;
  m.rail = std::move(*mapped);
  return {};
}

void LocalGroup::everybody_attached() {
  enter(State::wiring);
  if (auto made = make_words(); !made) return cannot_take_part(made.error());
  if (shape_->domains() == 1) return wired_if_complete();
  GroupRails rails;
  rails.key = id_.key;
  rails.shape = shape_;
  rails.domain = domain_;
  rails.segment = segment_;
  rails.generation = generation_;
  for (auto& [rank, m] : members_) {
    rails.ranks.push_back({static_cast<std::uint16_t>(rank), m.rail.data(), m.rail.bytes(), m.rail_words.data()});
  }
  for (const DaemonEntry& daemon : daemons_) {
    rails.daemon_of_domain.push_back({daemon.host.bytes, daemon.endpoint});
  }
  rails_in_use_ = true;
  proxy().open_group(std::move(rails));
  for (auto& [domain, posted] : std::exchange(early_quiesced_, {})) {
    proxy().peer_quiesced(id_.key, domain, std::move(posted));
  }
}

// This daemon's own failure, told to everybody in the name of its first rank.
void LocalGroup::cannot_take_part(const Status& reason) {
  const std::uint32_t rank = members_.begin()->first;
  to_coordinator({id_.key, WithdrawMessage{rank,
                                           {reason.code(), "the daemon of rank " + std::to_string(rank) + " on host " +
                                                               around_.host.hex().substr(0, 8) +
                                                               " cannot take part: " + reason.message()}}});
  finish(reason);
}

Result<void> LocalGroup::make_words() {
  const std::uint64_t group_bytes = ipc::GroupSegmentLayout(*shape_, domain_).bytes();
  std::uint64_t need = group_bytes;
  for (const auto& [rank, m] : members_) {
    if (shape_->domains() > 1) need += ipc::RailWordsLayout(*shape_, rank).bytes();
  }
  if (const std::uint64_t left = around_.quota_left(); need > left) {
    return fail(Code::limit_exceeded, "the group's control words need " + std::to_string(need) +
                                          " bytes, limits.control_bytes leaves " + std::to_string(left));
  }
  auto words = make_control_words("railhead-group", group_bytes);
  if (!words) return fail(words.error());
  words_ = std::move(*words);
  segment_ = ipc::GroupSegment(words_.data(), *shape_, domain_);
  if (shape_->domains() == 1) return {};
  for (auto& [rank, m] : members_) {
    auto rail_words = make_control_words("railhead-rail-words", ipc::RailWordsLayout(*shape_, rank).bytes());
    if (!rail_words) return fail(rail_words.error());
    m.rail_words = std::move(*rail_words);
  }
  return {};
}

void LocalGroup::rails_opened(Result<std::vector<WireOffer>> offers) {
  if (state_ == State::ended) return;
  if (!offers) return cannot_take_part(offers.error());
  rails_open_ = true;
  for (std::size_t d = 0; d < daemons_.size(); ++d) {
    if (d != domain_) around_.send(daemons_[d], {id_.key, WireMessage{std::move((*offers)[d])}});
  }
  for (auto& [host, wire] : std::exchange(early_wires_, {})) {
    if (const auto domain = domain_of_host(host)) on_wire(*domain, std::move(wire));
  }
}

void LocalGroup::on_wire(std::uint16_t domain, WireMessage wire) {
  if (state_ == State::wiring) proxy().connect_group(id_.key, domain, std::move(wire.offer));
}

void LocalGroup::rails_connected(std::uint16_t domain, Result<void> result) {
  if (state_ != State::wiring) return;
  if (!result) {
    return cannot_take_part({Code::peer_lost, "no path to the daemon of rank " +
                                                  std::to_string(shape_->ranks_of(domain).front()) + ": " +
                                                  result.error().message()});
  }
  connected_[domain] = true;
  wired_if_complete();
}

void LocalGroup::wired_if_complete() {
  if (wired_sent_ || std::find(connected_.begin(), connected_.end(), false) != connected_.end()) return;
  wired_sent_ = true;
  to_coordinator({id_.key, WiredMessage{}});
}

void LocalGroup::on_commit() {
  if (state_ != State::wiring) return;
  enter(State::running);
  ranks_have_words_ = true;
  missing_.clear();
  hold_coordinator(false);
  log_event(log::Level::info, "the group runs");
  for (auto& [rank, m] : members_) {
    if (auto answer = std::exchange(m.attached, nullptr); answer) {
      answer(Attached{words_.fd(), m.rail_words.valid() ? m.rail_words.fd() : -1, generation_});
    }
  }
  take_up_early_ends();
}

// What happened between the coordinator's commit and its arrival here.
void LocalGroup::take_up_early_ends() {
  for (const auto& [domain, end] : std::exchange(early_ends_, {})) {
    if (const auto* frozen = std::get_if<FrozenMessage>(&end)) on_frozen(domain, *frozen);
    if (const auto* left = std::get_if<LeftMessage>(&end)) on_left(*left);
  }
  for (const auto& [rank, m] : members_) {
    if (!m.present && state_ == State::running) soften(rank, "ended while the group was being made");
  }
}

Result<void> LocalGroup::add_segment(std::uint32_t rank, std::uint8_t id, ArenaSegment segment) {
  Member* const m = member(rank);
  if (state_ == State::ended) return fail(end_);
  if (m == nullptr || state_ != State::running || !m->present) {
    return fail(Code::invalid_usage, "rank " + std::to_string(rank) + " offers memory to a group that does not run");
  }
  const bool known = segment.kind == ipc::SegmentKind::receive || segment.kind == ipc::SegmentKind::combine;
  if (id >= ipc::kMaxSegments || m->arena.contains(id) || !known) {
    return fail(Code::protocol, "rank " + std::to_string(rank) + " offers segment " + std::to_string(id) + " of kind " +
                                    std::to_string(static_cast<int>(segment.kind)) + " which is taken or not allowed");
  }
  const unsigned seals = segment.kind == ipc::SegmentKind::combine ? ipc::frozen_seals() : ipc::size_seals();
  if (auto good = ipc::Segment::verify(segment.fd.get(), segment.bytes, seals); !good) return good;
  auto fd = std::make_shared<const ipc::UniqueFd>(std::move(segment.fd));
  m->arena.emplace(id, SharedSegment{segment.kind, segment.bytes, std::move(fd)});
  return {};
}

Result<const SharedSegment*> LocalGroup::peer_segment(std::uint32_t asking, std::uint32_t rank, std::uint8_t id) const {
  if (state_ == State::ended) return fail(end_);
  const auto found = members_.find(rank);
  if (!members_.contains(asking) || found == members_.end()) {
    return fail(Code::permission, "rank " + std::to_string(asking) + " asked for memory of rank " +
                                      std::to_string(rank) + ", which is not a rank of its group on this host");
  }
  const auto segment = found->second.arena.find(id);
  if (segment == found->second.arena.end()) {
    return fail(Code::protocol, "rank " + std::to_string(rank) + " has no arena segment " + std::to_string(id));
  }
  return &segment->second;
}

std::uint64_t LocalGroup::control_bytes() const {
  std::uint64_t sum = words_.bytes();
  for (const auto& [rank, m] : members_) sum += m.rail_words.bytes();
  return sum;
}

std::vector<LocalGroup::MemberView> LocalGroup::members() const {
  std::vector<MemberView> out;
  for (const auto& [rank, m] : members_) {
    MemberView view{rank, m.client, m.present, !m.arena.empty(), 0, m.arena.size(), m.rail.bytes()};
    for (const auto& [id, segment] : m.arena) view.arena_bytes += segment.bytes;
    out.push_back(view);
  }
  return out;
}

}  // namespace railhead::daemon
