#include "daemon/control/drain.hpp"

#include <algorithm>

namespace railhead::daemon {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::uint64_t ms(steady_clock::duration time) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(duration_cast<milliseconds>(time).count(), 0));
}

std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace

std::uint64_t Drain::since_ms() const {
  return ms(steady_clock::now() - since);
}

std::uint64_t Drain::ends_in_ms() const {
  return ms(deadline - steady_clock::now());
}

std::vector<const Session*> open_sessions(const SessionTable& sessions) {
  std::vector<const Session*> out;
  for (const auto& [id, session] : sessions.all()) {
    if (!session->ended) out.push_back(session.get());
  }
  return out;
}

std::string still_open(const SessionTable& sessions, const GroupRegistry& groups) {
  const auto open = std::count_if(groups.groups().begin(), groups.groups().end(),
                                  [](const auto& entry) { return entry.second->state() != LocalGroup::State::ended; });
  return counted(open_sessions(sessions).size(), "session") + ", " + counted(static_cast<std::size_t>(open), "group") +
         " still open";
}

Status refusal(const Drain& drain) {
  return {Code::unavailable, "the daemon is shutting down: it takes no new sessions and groups, and ends in " +
                                 std::to_string((drain.ends_in_ms() + 999) / 1000) + " s at the latest"};
}

}  // namespace railhead::daemon
