// Client processes of this daemon. Control thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/group/client_process.hpp"
#include "daemon/group/local_group.hpp"
#include "ipc/fd.hpp"
#include "ipc/liveness_watcher.hpp"
#include "ipc/segment.hpp"

namespace railhead::daemon {

struct Session {
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  std::uint32_t id = 0;
  ClientProcess process;
  std::uint32_t uid = 0;
  std::string job;
  std::string build;
  std::chrono::steady_clock::time_point since;
  ipc::Segment words;  // LivenessCell
  ipc::UniqueFd pidfd;
  bool watched = false;
  Status unwatched;    // why not, when that was tried and failed
  bool ended = false;  // notice given: no more calls, its ranks are lost
  std::string end_reason;
  std::chrono::steady_clock::time_point ended_at;
  // Closes its connection: a forked child may hold the other end long after the process is gone.
  std::function<void()> hang_up;
  std::vector<std::pair<std::shared_ptr<LocalGroup>, std::uint32_t>> memberships;
};

// What it means that its liveness word has no watcher.
std::string unwatched_text(const Session& session);

class SessionTable {
 public:
  explicit SessionTable(std::size_t most, ipc::LifeEnded on_end) : most_(most), watchers_(std::move(on_end)) {}

  // limit_exceeded when full. Makes the session's words; watch() begins once the client owns its cell.
  Result<std::shared_ptr<Session>> open(ClientProcess process, std::uint32_t uid, std::string job, std::string build,
                                        ipc::UniqueFd pidfd);
  [[nodiscard]] std::shared_ptr<Session> find(std::uint32_t id) const;
  [[nodiscard]] const std::map<std::uint32_t, std::shared_ptr<Session>>& all() const { return sessions_; }
  [[nodiscard]] std::uint64_t opened() const { return next_ - 1; }

  // The client's library owns its liveness word by now (its first call after hello). Says once why it failed; every
  // later call tries again.
  Status watch(Session& session);
  // Notice: its ranks are lost, in every group. Once.
  void end(Session& session, const std::string& how);
  // The process is gone: its memory may be let go.
  void fenced(Session& session);
  void forget(std::uint32_t id);

 private:
  std::size_t most_;
  std::uint32_t next_ = 1;
  std::map<std::uint32_t, std::shared_ptr<Session>> sessions_;
  ipc::LivenessPool watchers_;
};

}  // namespace railhead::daemon
