// The session's line to its daemon: Cap'n Proto over a UNIX socket, on a thread of its own that also owns the liveness
// word. Every call blocks its caller up to a deadline; any thread may call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ipc/fd.hpp"
#include "ipc/layout/segment_kind.hpp"
#include "ipc/layout/shape.hpp"
#include "ipc/segment.hpp"
#include "ipc/status.hpp"

namespace railhead::client {

using Milliseconds = std::uint64_t;

struct Greeting {
  std::string socket;
  std::string job;
  Milliseconds timeout = 10'000;
};

struct JoinResult {
  std::uint32_t member = 0;  // names this membership in later calls
  ipc::GroupMap map;
  std::uint32_t proxy = 0;  // whose bell to ring
  std::string name;         // of the group, as epctl and the logs have it
};

struct SegmentOffer {
  ipc::SegmentKind kind;
  std::uint8_t id;
  std::uint64_t bytes;
  int fd;  // borrowed for the call
};

struct AttachResult {
  ipc::UniqueFd group_words;
  ipc::UniqueFd rail_words;  // empty when there is one domain
  std::uint8_t generation = 0;
};

struct PeerSegment {
  ipc::SegmentKind kind = ipc::SegmentKind::receive;
  std::uint64_t bytes = 0;
  ipc::UniqueFd fd;
};

class DaemonLink {
 public:
  static Result<std::unique_ptr<DaemonLink>> connect(const Greeting& greeting);
  virtual ~DaemonLink() = default;  // hangs up; the daemon then ends the session

  virtual Result<std::vector<std::uint8_t>> unique_id() = 0;
  virtual Result<JoinResult> join(const std::vector<std::uint8_t>& id, std::uint32_t rank,
                                  const ipc::GroupParams& params, Milliseconds timeout) = 0;
  virtual Result<AttachResult> attach(std::uint32_t member, const std::vector<SegmentOffer>& segments,
                                      Milliseconds timeout) = 0;
  virtual Result<void> add_segment(std::uint32_t member, const SegmentOffer& segment) = 0;
  virtual Result<PeerSegment> peer_segment(std::uint32_t member, std::uint32_t rank, std::uint8_t id) = 0;
  // Sent without waiting for the answer.
  virtual void abort(std::uint32_t member, const Status& reason) = 0;
  // For operators alone: nothing is lost when it cannot be said.
  virtual void refused(std::uint32_t member, std::uint64_t op, bool planned, const std::string& reason) = 0;
  virtual Result<void> leave(std::uint32_t member) = 0;

  // From the daemon page and the socket; cheap.
  [[nodiscard]] virtual bool alive() const = 0;
  // Wakes a proxy if it sleeps.
  virtual void ring_bell(std::uint32_t proxy) const = 0;
};

}  // namespace railhead::client
