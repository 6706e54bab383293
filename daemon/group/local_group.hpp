// One group as this daemon takes part in it: its local ranks, their memory, the shared words, the rails, and its end.
//
//   joining -> attaching -> wiring -> running -> ended
//
// Everything here runs on the control thread. Promises of waiting clients are kept as callbacks, so that the logic can
// be tested without RPC.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/group/client_process.hpp"
#include "daemon/group/messages.hpp"
#include "daemon/group/unique_id.hpp"
#include "daemon/log/log.hpp"
#include "ipc/fd.hpp"
#include "ipc/layout/group_segment.hpp"
#include "ipc/layout/segment_kind.hpp"
#include "ipc/segment.hpp"

namespace railhead::daemon {

// What a local rank gave us or waits for.
struct Mapped {
  std::uint32_t epoch = 0;
  std::vector<std::uint16_t> domain_of_rank;
};
struct Attached {
  int group_words = -1;  // borrowed
  int rail_words = -1;   // borrowed; -1 with one domain
  std::uint8_t generation = 0;
};
struct ArenaSegment {
  ipc::SegmentKind kind = ipc::SegmentKind::receive;
  std::uint64_t bytes = 0;
  ipc::UniqueFd fd;
};
// One that is relayed: all capabilities for it stand on one descriptor.
struct SharedSegment {
  ipc::SegmentKind kind = ipc::SegmentKind::receive;
  std::uint64_t bytes = 0;
  std::shared_ptr<const ipc::UniqueFd> fd;
};

// The world around a group.
struct GroupSurroundings {
  mesh::HostId host;
  std::string endpoint;  // of our mesh
  const log::Log* log = nullptr;
  std::vector<Proxy*> proxies;
  std::function<void(const DaemonEntry& to, GroupMessage message)> send;
  std::function<void(const DaemonEntry& peer, bool wanted)> retain;  // keep the mesh link while the group lives
  std::function<void(std::chrono::milliseconds, std::function<void()>)> after;  // one-shot timer
  std::function<std::uint64_t()> quota_left;  // bytes of control words we may still make
  std::function<void()> changed;              // something that `remove_when_empty` depends on
};

class LocalGroup : public std::enable_shared_from_this<LocalGroup> {
 public:
  enum class State : std::uint8_t { joining, attaching, wiring, running, ended };
  // Bytes of a client's sentence that are kept, logged and passed on: with what is said after it, it fits into the
  // poison's text.
  static constexpr std::size_t kMostReason = 400;

  LocalGroup(UniqueId id, ipc::GroupParams params, GroupSurroundings around);
  ~LocalGroup();

  // --- from local ranks ---
  struct Client {
    std::uint32_t session = 0;
    ClientProcess process;
    std::uint32_t uid = 0;
  };
  void join(std::uint32_t rank, Client client, const ipc::GroupParams& params,
            std::function<void(Result<Mapped>)> mapped);
  void withdraw(std::uint32_t rank);  // gave up before the map
  // `attached` must not throw: the other ranks wait for the same event.
  void attach(std::uint32_t rank, std::optional<ArenaSegment> rail, std::function<void(Result<Attached>)> attached);
  Result<void> add_segment(std::uint32_t rank, std::uint8_t id, ArenaSegment segment);
  Result<const SharedSegment*> peer_segment(std::uint32_t asking, std::uint32_t rank, std::uint8_t id) const;
  void leave(std::uint32_t rank);
  void abort(std::uint32_t rank, const Status& reason);
  // A call of this rank did not happen; the others wait for it.
  void refused(RefusedCallMessage call);
  // The process of a rank has ended (or was evicted): `how` completes "rank 2 (pid 41) ...".
  void lost(std::uint32_t rank, const std::string& how);
  // Its pidfd has fired: nothing of it writes any more.
  void fenced(std::uint32_t rank);

  // --- from other daemons ---
  void on_message(const mesh::HostId& from, GroupMessage message);
  void peer_lost(const DaemonEntry& peer, const Status& reason);

  // --- from the proxy ---
  void rails_opened(Result<std::vector<WireOffer>> offers);
  void rails_connected(std::uint16_t domain, Result<void> result);
  void rails_failed(std::uint16_t domain, std::uint16_t rank, const Status& reason);
  void rails_quiesced(std::uint16_t domain, std::vector<std::pair<std::uint16_t, std::uint64_t>> posted);
  void rails_closed();

  // The daemon is going away.
  void end_all(const Status& reason);

  // --- for the registry and for operators ---
  [[nodiscard]] const UniqueId& id() const { return id_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::chrono::steady_clock::time_point since() const { return since_; }  // in this state
  [[nodiscard]] const Status& end() const { return end_; }
  [[nodiscard]] const ipc::GroupParams& params() const { return params_; }
  [[nodiscard]] const ipc::GroupShape* shape() const { return shape_.get(); }
  [[nodiscard]] const ipc::GroupSegment& segment() const { return segment_; }
  [[nodiscard]] std::uint16_t domain() const { return domain_; }
  // Which proxy serves it: the same on all its hosts, known with the map.
  [[nodiscard]] std::uint32_t proxy_index() const { return proxy_index_; }
  [[nodiscard]] const std::vector<std::uint32_t>& missing() const { return missing_; }
  [[nodiscard]] const std::vector<DaemonEntry>& daemons() const { return daemons_; }
  // The newest refused call of each rank that has not been made good since.
  [[nodiscard]] std::vector<RefusedCallMessage> refused_calls() const;
  [[nodiscard]] std::uint64_t control_bytes() const;
  // No local rank is left, nothing is mapped and nobody looks at the control words: may be forgotten.
  [[nodiscard]] bool empty() const;
  // The control words stop being ours to pay for. Only when empty; nothing else may be asked of the group then.
  void take_back_words();

  struct MemberView {
    std::uint32_t rank;
    Client client;
    bool present;
    bool holds_memory;
    std::uint64_t arena_bytes;
    std::size_t arena_segments;
    std::uint64_t rail_bytes;
  };
  [[nodiscard]] std::vector<MemberView> members() const;

 private:
  struct Member {
    Client client;
    bool present = true;  // its process takes part
    bool fenced = false;  // its process is gone
    std::function<void(Result<Mapped>)> mapped;
    std::function<void(Result<Attached>)> attached;
    bool has_attached = false;
    ipc::Segment rail;
    ipc::Segment rail_words;
    std::map<std::uint8_t, SharedSegment> arena;
  };

  // making
  void on_map(const MapMessage& map);
  void on_refused(const Status& reason);
  void note_refused(RefusedCallMessage call);
  void on_commit();
  void enter(State state) {
    state_ = state;
    since_ = std::chrono::steady_clock::now();
  }
  void take_up_early_ends();
  [[nodiscard]] bool fits(const MapMessage& map) const;
  [[nodiscard]] Proxy& proxy() const { return *around_.proxies[proxy_index_]; }
  void hold_coordinator(bool wanted);
  void let_go_links();
  Result<void> map_rail(Member& member, std::uint32_t rank, std::optional<ArenaSegment> rail);
  void everybody_attached();
  void cannot_take_part(const Status& reason);
  Result<void> make_words();
  void on_wire(std::uint16_t domain, WireMessage wire);
  void wired_if_complete();
  // ending (local_group_end.cpp)
  void soften(std::uint32_t rank, const std::string& how);
  void harden(const Status& reason, std::uint16_t rank);
  void on_frozen(std::uint16_t domain, const FrozenMessage& frozen);
  void on_left(const LeftMessage& left);
  [[nodiscard]] bool believable(const LeftMessage& left);
  void note_left(const LeftMessage& left);
  void end_when_drained();
  [[nodiscard]] std::string left_text() const;
  void poison_now();
  void finish_poisoned(const Status& reason, std::uint16_t rank);
  void keep_poisoned();
  void finish(const Status& reason);
  void release_quiet();
  void close_rails_if_done();
  // Nothing of this rank reads or writes shared memory any more, or ever did.
  [[nodiscard]] bool is_gone(const Member& member) const { return member.fenced || !ranks_have_words_; }
  [[nodiscard]] bool between_operations(std::uint32_t rank) const;
  [[nodiscard]] std::uint64_t published_by_all() const;
  [[nodiscard]] std::uint64_t completed_here() const;
  [[nodiscard]] std::string who(std::uint32_t rank) const;

  void to_coordinator(GroupMessage message);
  void to_others(const std::function<GroupMessage()>& message);
  [[nodiscard]] std::optional<std::uint16_t> domain_of_host(const mesh::HostId& host) const;
  void log_event(log::Level level, const std::string& text, std::optional<std::uint32_t> rank = {}) const;
  Member* member(std::uint32_t rank);

  UniqueId id_;
  ipc::GroupParams params_;
  GroupSurroundings around_;
  State state_ = State::joining;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  Status end_;
  std::map<std::uint32_t, Member> members_;  // local ranks
  std::vector<std::uint32_t> missing_;

  std::vector<DaemonEntry> daemons_;  // by domain
  std::shared_ptr<const ipc::GroupShape> shape_;
  std::uint16_t domain_ = 0;
  std::uint32_t proxy_index_ = 0;
  ipc::Segment words_;
  ipc::GroupSegment segment_;
  std::uint8_t generation_ = 0;

  std::map<mesh::HostId, WireMessage> early_wires_;  // arrived before our rails were open
  // The same, from a daemon whose group is over already: it says this once, and without it the path to it never
  // settles.
  std::map<std::uint16_t, std::vector<std::pair<std::uint16_t, std::uint64_t>>> early_quiesced_;
  std::vector<bool> connected_;
  // Said by daemons whose commit came before ours.
  std::vector<std::pair<std::uint16_t, std::variant<FrozenMessage, LeftMessage>>> early_ends_;
  bool holds_coordinator_ = false;
  bool holds_links_ = false;
  bool looking_for_quiet_ = false;
  bool looking_for_drained_ = false;
  bool ranks_have_words_ = false;
  bool rails_open_ = false;
  bool rails_in_use_ = false;  // the proxy has our mappings
  bool rails_closing_ = false;
  bool wired_sent_ = false;

  bool frozen_ = false;
  Status freeze_reason_;
  std::uint16_t freeze_rank_ = ipc::Poison::kNoRank;
  std::vector<std::optional<std::uint64_t>> frozen_at_;  // by domain
  bool poisoned_ = false;
  ipc::Poison poison_;               // as the ranks were told; code ok = not yet
  std::vector<bool> has_left_;       // by rank; the words that say so belong to the ranks, too
  std::optional<LeftMessage> left_;  // the first rank that left; `completed` is the latest of all
  std::map<std::uint32_t, RefusedCallMessage> refused_calls_;  // by rank
  bool drain_rails_ = false;
  std::vector<bool> domain_lost_;
};

const char* state_name(LocalGroup::State state) noexcept;

}  // namespace railhead::daemon
