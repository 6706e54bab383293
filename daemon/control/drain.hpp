// The last time of a daemon that was told to stop: who is in gets until the deadline to end by itself, newcomers are
// refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/control/sessions.hpp"
#include "daemon/group/registry.hpp"
#include "ipc/status.hpp"

namespace railhead::daemon {

struct Drain {
  std::chrono::steady_clock::time_point since;
  std::chrono::steady_clock::time_point deadline;  // what is left then is aborted

  [[nodiscard]] std::uint64_t since_ms() const;
  [[nodiscard]] std::uint64_t ends_in_ms() const;
};

// Sessions whose clients are there: the daemon waits for them.
std::vector<const Session*> open_sessions(const SessionTable& sessions);

// "2 sessions, 1 group still open"
std::string still_open(const SessionTable& sessions, const GroupRegistry& groups);

// What a client is told that comes now.
Status refusal(const Drain& drain);

}  // namespace railhead::daemon
