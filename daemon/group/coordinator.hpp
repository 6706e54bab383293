// The coordinator of one group to be: collects joins, compares parameters, fixes the map, commits. Pure logic: messages
// in, messages out, no clock and no I/O of its own. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/group/messages.hpp"
#include "daemon/mesh/host_id.hpp"

namespace railhead::daemon {

class Coordinator {
 public:
  using Send = std::function<void(const DaemonEntry& to, GroupMessage message)>;
  using ValueOf = std::function<std::string(const ipc::GroupParams&)>;

  Coordinator(GroupKey key, std::array<std::uint8_t, 16> secret, Send send)
      : key_(key), secret_(secret), send_(std::move(send)) {}

  void on_join(const mesh::HostId& from, const JoinMessage& join);
  // Before the map is fixed the rank may come again, from anywhere; afterwards nobody gets the group, for that reason.
  void on_withdraw(const mesh::HostId& from, const WithdrawMessage& withdraw);
  // The ranks of that host that have not attached their memory yet.
  void on_attaching(const mesh::HostId& from, const std::vector<std::uint32_t>& ranks);
  void on_wired(const mesh::HostId& from);
  // Before the commit that refuses the group for everybody; afterwards the participants see to it themselves.
  void on_lost(const DaemonEntry& peer, const std::string& reason);
  void refuse(const Status& reason);

  // Refused: a rank that comes now is told the same reason.
  [[nodiscard]] bool refused() const noexcept { return state_ == State::refused; }
  // Committed, or refused: nothing more to do here.
  [[nodiscard]] bool finished() const noexcept { return state_ == State::committed || state_ == State::refused; }
  [[nodiscard]] bool unused() const noexcept { return state_ == State::collecting && joined_.empty(); }
  [[nodiscard]] bool waits_for_ranks() const noexcept { return state_ == State::collecting; }
  // Ranks that have not joined, then those that have not attached; empty when the number of ranks is not known yet.
  [[nodiscard]] std::vector<std::uint32_t> missing() const;
  // What a sentence says about them, or about the daemons that are not connected; empty before the first join.
  [[nodiscard]] std::string waits_for() const;
  // Tells every participant who is missing.
  void announce_missing();

 private:
  enum class State : std::uint8_t { collecting, wiring, committed, refused };
  struct Joined {
    DaemonEntry daemon;
    ipc::GroupParams params;
    std::uint32_t proxies;
  };

  [[nodiscard]] std::vector<std::uint32_t> not_joined() const;
  // All of a host whose daemon has not said anything yet.
  [[nodiscard]] std::vector<std::uint32_t> not_attached() const;
  [[nodiscard]] std::vector<std::uint32_t> not_wired() const;
  // Empty when all that have joined agree; `latest` is the one that joined last.
  [[nodiscard]] std::string compare(std::uint32_t latest) const;
  [[nodiscard]] std::string differing(const ValueOf& value) const;
  [[nodiscard]] std::string compare_maps(const ipc::GroupParams& mine, const ipc::GroupParams& theirs) const;
  void fix_map();
  void send_all(const std::function<GroupMessage()>& message);

  GroupKey key_;
  std::array<std::uint8_t, 16> secret_;
  Send send_;
  State state_ = State::collecting;
  Status refusal_;
  std::map<std::uint32_t, Joined> joined_;  // by rank
  std::map<mesh::HostId, DaemonEntry> daemons_;
  std::map<mesh::HostId, std::set<std::uint32_t>> attaching_;
  std::map<mesh::HostId, bool> wired_;
};

// "3, 5-8 and 12"
std::string rank_list(const std::vector<std::uint32_t>& ranks);
// The same with "rank " or "ranks " before it.
std::string named_ranks(const std::vector<std::uint32_t>& ranks);

}  // namespace railhead::daemon
