#include "daemon/group/coordinator.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "daemon/group/unique_id.hpp"

namespace railhead::daemon {
namespace {

// One value of every rank, as text, with the name of its field.
struct Field {
  const char* name;
  Coordinator::ValueOf value;
};

const std::vector<Field>& fields() {
  static const std::vector<Field> list = {
      {"ranks", [](const auto& p) { return std::to_string(p.ranks); }},
      {"experts", [](const auto& p) { return std::to_string(p.experts); }},
      {"hidden", [](const auto& p) { return std::to_string(p.hidden); }},
      {"topk", [](const auto& p) { return std::to_string(p.topk); }},
      {"side_bytes", [](const auto& p) { return std::to_string(p.side_bytes); }},
      {"channels", [](const auto& p) { return std::to_string(p.channels); }},
      {"depth", [](const auto& p) { return std::to_string(p.depth); }},
      {"ring_slots", [](const auto& p) { return std::to_string(p.ring_slots); }},
      {"chunk_bytes", [](const auto& p) { return std::to_string(p.chunk_bytes); }},
      {"max_handles", [](const auto& p) { return std::to_string(p.max_handles); }},
      {"abort_on_refusal", [](const auto& p) { return std::string(p.abort_on_refusal ? "1" : "0"); }},
  };
  return list;
}

std::vector<std::uint32_t> map_of(const ipc::GroupParams& p) {
  return p.expert_rank.empty() ? ipc::default_expert_rank(p.experts, p.ranks) : p.expert_rank;
}

// Where two maps of one length differ first; nothing where they are the same, be it that one spells out the default.
std::optional<std::size_t> first_difference(const ipc::GroupParams& a, const ipc::GroupParams& b) {
  if (a.expert_rank == b.expert_rank) return std::nullopt;
  const auto one = map_of(a);
  const auto other = map_of(b);
  const auto at = std::mismatch(one.begin(), one.end(), other.begin()).first;
  if (at == one.end()) return std::nullopt;
  return static_cast<std::size_t>(at - one.begin());
}

}  // namespace

std::string rank_list(const std::vector<std::uint32_t>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i;
    while (end + 1 < ranks.size() && ranks[end + 1] == ranks[end] + 1) ++end;
    if (end == i + 1) end = i;  // two in a row are named one by one
    parts.push_back(std::to_string(ranks[i]) + (end == i ? "" : "-" + std::to_string(ranks[end])));
    i = end + 1;
  }
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) out += i + 1 == parts.size() ? " and " : ", ";
    out += parts[i];
  }
  return out;
}

std::string named_ranks(const std::vector<std::uint32_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_list(ranks);
}

void Coordinator::on_join(const mesh::HostId& from, const JoinMessage& join) {
  const DaemonEntry daemon{from, join.endpoint};
  const auto refuse_one = [&](Code code, std::string reason) {
    send_(daemon, {key_, RefusedMessage{{code, std::move(reason)}}});
  };
  if (join.secret != secret_) return refuse_one(Code::permission, "the secret of the unique id is wrong");
  if (auto good = ipc::validate(join.params); !good) return refuse_one(good.error().code(), good.error().message());
  if (join.rank >= join.params.ranks) {
    return refuse_one(Code::invalid_argument,
                      "rank is " + std::to_string(join.rank) + ", ranks is " + std::to_string(join.params.ranks));
  }
  if (state_ == State::refused) return refuse_one(refusal_.code(), refusal_.message());
  if (state_ != State::collecting) {
    return refuse_one(Code::invalid_usage,
                      "the group of this unique id was made already; make a new id for a new group");
  }
  daemons_.emplace(from, daemon);  // before anything that is told to all
  if (const auto found = joined_.find(join.rank); found != joined_.end()) {
    return refuse({Code::invalid_argument, "rank " + std::to_string(join.rank) + " joined twice: from host " +
                                               found->second.daemon.host.hex().substr(0, 8) + " and from host " +
                                               from.hex().substr(0, 8) + "; every process needs a rank of its own"});
  }
  joined_.emplace(join.rank, Joined{daemon, join.params, join.proxies});
  // A difference is told at once: the ranks that are still missing may never come.
  if (const std::string difference = compare(join.rank); !difference.empty())
    return refuse({Code::mismatch, difference});
  if (joined_.size() == join.params.ranks) fix_map();
}

void Coordinator::on_withdraw(const mesh::HostId& from, const WithdrawMessage& withdraw) {
  const auto found = joined_.find(withdraw.rank);
  if (found == joined_.end() || found->second.daemon.host != from) return;
  if (state_ == State::collecting) {
    joined_.erase(found);
    const bool last =
        std::none_of(joined_.begin(), joined_.end(), [&](const auto& j) { return j.second.daemon.host == from; });
    if (last) daemons_.erase(from);
    return;
  }
  if (state_ == State::wiring) {
    refuse(withdraw.reason);
  }
}

void Coordinator::on_attaching(const mesh::HostId& from, const std::vector<std::uint32_t>& ranks) {
  if (state_ == State::wiring && daemons_.contains(from)) attaching_[from] = {ranks.begin(), ranks.end()};
}

void Coordinator::on_wired(const mesh::HostId& from) {
  if (state_ != State::wiring || !daemons_.contains(from)) return;
  wired_[from] = true;
  if (wired_.size() < daemons_.size()) return;
  state_ = State::committed;
  send_all([&] { return GroupMessage{key_, CommitMessage{}}; });
}

void Coordinator::on_lost(const DaemonEntry& peer, const std::string& reason) {
  const auto found = daemons_.find(peer.host);
  if (finished() || found == daemons_.end() || found->second != peer) return;
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, joined] : joined_) {
    if (joined.daemon.host == peer.host) ranks.push_back(rank);
  }
  daemons_.erase(found);
  refuse({Code::peer_lost,
          "the daemon of ranks " + rank_list(ranks) + " was lost while the group was being made: " + reason});
}

void Coordinator::refuse(const Status& reason) {
  state_ = State::refused;
  refusal_ = reason;
  send_all([&] { return GroupMessage{key_, RefusedMessage{reason}}; });
}

std::vector<std::uint32_t> Coordinator::missing() const {
  if (state_ == State::collecting) return not_joined();
  return state_ == State::wiring ? not_attached() : std::vector<std::uint32_t>();
}

std::string Coordinator::waits_for() const {
  const auto ranks = missing();
  if (state_ == State::collecting) return ranks.empty() ? "" : named_ranks(ranks) + " to join";
  if (!ranks.empty()) return named_ranks(ranks) + " to attach " + (ranks.size() == 1 ? "its" : "their") + " memory";
  const auto unwired = not_wired();
  return unwired.empty() ? "" : "the paths to the daemons of " + named_ranks(unwired);
}

std::vector<std::uint32_t> Coordinator::not_attached() const {
  std::vector<std::uint32_t> out;
  for (const auto& [rank, joined] : joined_) {
    if (wired_.contains(joined.daemon.host)) continue;
    const auto said = attaching_.find(joined.daemon.host);
    if (said == attaching_.end() || said->second.contains(rank)) out.push_back(rank);
  }
  return out;
}

std::vector<std::uint32_t> Coordinator::not_wired() const {
  std::vector<std::uint32_t> out;
  for (const auto& [rank, joined] : joined_) {
    if (!wired_.contains(joined.daemon.host)) out.push_back(rank);
  }
  return out;
}

std::vector<std::uint32_t> Coordinator::not_joined() const {
  std::vector<std::uint32_t> out;
  if (joined_.empty()) return out;
  for (std::uint32_t r = 0; r < joined_.begin()->second.params.ranks; ++r) {
    if (!joined_.contains(r)) out.push_back(r);
  }
  return out;
}

void Coordinator::announce_missing() {
  if (finished()) return;
  send_all([&] { return GroupMessage{key_, MissingMessage{missing()}}; });
}

// Names the field, and the ranks behind each of its values.
// With one earlier rank: those that joined before agree with each other, or the group would have ended.
std::string Coordinator::compare(std::uint32_t latest) const {
  const auto earlier = std::find_if(joined_.begin(), joined_.end(), [&](const auto& j) { return j.first != latest; });
  if (earlier == joined_.end()) return {};
  const ipc::GroupParams& mine = joined_.at(latest).params;
  const ipc::GroupParams& theirs = earlier->second.params;
  for (const Field& field : fields()) {
    if (field.value(mine) == field.value(theirs)) continue;
    return std::string("group parameter ") + field.name + " differs between ranks: " + differing(field.value);
  }
  return compare_maps(mine, theirs);
}

// "16 on ranks 0 and 1; 32 on rank 5"
std::string Coordinator::differing(const ValueOf& value) const {
  std::map<std::string, std::vector<std::uint32_t>> ranks_by_value;
  for (const auto& [rank, joined] : joined_) ranks_by_value[value(joined.params)].push_back(rank);
  std::string text;
  for (const auto& [of_ranks, ranks] : ranks_by_value) {
    text += (text.empty() ? "" : "; ") + of_ranks + " on " + named_ranks(ranks);
  }
  return text;
}

std::string Coordinator::compare_maps(const ipc::GroupParams& mine, const ipc::GroupParams& theirs) const {
  const auto expert = first_difference(mine, theirs);
  if (!expert) return {};
  const std::uint32_t by_default = ipc::default_expert_rank(mine.experts, mine.ranks)[*expert];
  return "group parameter expert_to_rank differs between ranks: expert_to_rank[" + std::to_string(*expert) +
         "]: " + differing([&](const ipc::GroupParams& p) {
           return p.expert_rank.empty() ? std::to_string(by_default) + " (default)"
                                        : std::to_string(p.expert_rank[*expert]);
         });
}

// Domains are numbered by their lowest rank.
void Coordinator::fix_map() {
  MapMessage map;
  map.proxies = UINT32_MAX;
  std::map<mesh::HostId, std::uint16_t> domain_of;
  for (const auto& [rank, joined] : joined_) {
    const auto next = static_cast<std::uint16_t>(map.daemons.size());
    const auto [at, is_new] = domain_of.emplace(joined.daemon.host, next);
    if (is_new) map.daemons.push_back(joined.daemon);
    map.domain_of_rank.push_back(at->second);
    map.proxies = std::min(map.proxies, joined.proxies);
  }
  std::uint32_t epoch = 0;
  if (const auto random = random_bytes(); random) std::memcpy(&epoch, random->data(), sizeof(epoch));
  map.epoch = epoch == 0 ? 1 : epoch;
  state_ = State::wiring;
  send_all([&] { return GroupMessage{key_, map}; });
}

void Coordinator::send_all(const std::function<GroupMessage()>& message) {
  for (const auto& [host, daemon] : daemons_) send_(daemon, message());
}

}  // namespace railhead::daemon
