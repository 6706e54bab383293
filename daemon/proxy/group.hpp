// A group as one proxy sees it, and its paths to the daemons of the other domains.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/proxy/nic_memory.hpp"
#include "daemon/proxy/proxy.hpp"
#include "daemon/proxy/rings.hpp"

namespace railhead::daemon::rail {

struct Peer;
class Group;

inline constexpr std::uint16_t kNoRank = 0xffff;

using Posted = std::vector<std::pair<std::uint16_t, std::uint64_t>>;  // (receiver's ring number, slots)

// One other domain of one group.
struct Path {
  enum class State : std::uint8_t {
    opened,     // our offer is out, the peer's is not here
    offered,    // both offers are there, the connection is not
    connected,  // writes may be posted
    dead,       // the connection is gone, or never came
  };

  Group* group = nullptr;
  std::uint16_t domain = 0;
  Peer* peer = nullptr;  // null for the own domain
  State state = State::opened;
  fabric::RemoteKey credits;      // the peer's credit table
  std::uint64_t outstanding = 0;  // posted writes whose end was not reported yet
  bool failed = false;            // reported
  bool quiesced = false;          // reported
  std::optional<Posted> peer_posted;
  std::vector<Ring*> inbound;   // ours, in the peer's numbering table
  std::vector<Ring*> outbound;  // the peer's
};

class Group {
 public:
  // Checks what the control side passed. Registers nothing.
  static Result<std::unique_ptr<Group>> create(GroupRails memory, const ProxyEvents& events);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // The group cannot go on: reported once per domain, submissions stop.
  void fail(std::uint16_t failed_domain, std::uint16_t rank, Status status);

  [[nodiscard]] const GroupKey& key() const noexcept { return source_.key; }
  [[nodiscard]] const ipc::GroupShape& shape() const noexcept { return *source_.shape; }
  [[nodiscard]] std::uint16_t domain() const noexcept { return source_.domain; }
  [[nodiscard]] const ipc::GroupSegment& segment() const noexcept { return source_.segment; }
  [[nodiscard]] const GroupRails& source() const noexcept { return source_; }
  [[nodiscard]] const ProxyEvents& events() const noexcept { return *events_; }

  std::vector<Rail> rails;         // by local index
  std::vector<Path> paths;         // by domain
  std::vector<HeaderRx> headers;   // of remote ranks
  std::vector<HeaderRx*> waiting;  // headers that arrived before their window opened
  NicMemory own;                   // header slots of remote ranks, then credit sources
  bool stopped = false;            // no further submissions
  bool draining = false;           // closes when everything submitted is posted
  bool closing = false;
  std::chrono::steady_clock::time_point close_deadline;

 private:
  Group(GroupRails memory, const ProxyEvents& events) : source_(std::move(memory)), events_(&events) {}
  Result<void> add_rails();
  void add_headers();

  GroupRails source_;
  const ProxyEvents* events_;
};

}  // namespace railhead::daemon::rail
