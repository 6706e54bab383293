#include "daemon/control/sessions.hpp"

#include "daemon/group/control_words.hpp"

namespace railhead::daemon {

Session::~Session() {
  take_back(words);
}

std::string unwatched_text(const Session& session) {
  return "session " + std::to_string(session.id) + " (" + session.process.name() +
         ") is not watched: its death is noticed only when its process is gone, which a core dump delays by seconds, "
         "and the loss of its library's thread not at all";
}

Result<std::shared_ptr<Session>> SessionTable::open(ClientProcess process, std::uint32_t uid, std::string job,
                                                    std::string build, ipc::UniqueFd pidfd) {
  if (sessions_.size() >= most_) {
    return fail(Code::limit_exceeded,
                std::to_string(sessions_.size()) + " sessions, limits.sessions is " + std::to_string(most_));
  }
  auto words = make_control_words("railhead-session", ipc::page_bytes());
  if (!words) return fail(words.error());
  auto session = std::make_shared<Session>();
  session->id = next_++;
  session->process = process;
  session->uid = uid;
  session->job = std::move(job);
  session->build = std::move(build);
  session->since = std::chrono::steady_clock::now();
  session->words = std::move(*words);
  session->pidfd = std::move(pidfd);
  sessions_.emplace(session->id, session);
  return session;
}

std::shared_ptr<Session> SessionTable::find(std::uint32_t id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second;
}

Status SessionTable::watch(Session& session) {
  if (session.watched || session.ended) return {};
  const auto* const cell = reinterpret_cast<const ipc::LivenessCell*>(session.words.data());
  const auto added = watchers_.add(session.id, *cell);
  session.watched = added.has_value();
  const bool said = !session.unwatched.ok();
  session.unwatched = added ? Status() : added.error();
  return said ? Status() : session.unwatched;
}

void SessionTable::end(Session& session, const std::string& how) {
  if (session.ended) return;
  session.ended = true;
  session.end_reason = how;
  session.ended_at = std::chrono::steady_clock::now();
  if (session.watched) watchers_.remove(session.id);
  const auto memberships = session.memberships;
  for (const auto& [group, rank] : memberships) group->lost(rank, how);
}

void SessionTable::fenced(Session& session) {
  for (const auto& [group, rank] : session.memberships) group->fenced(rank);
  session.memberships.clear();
}

void SessionTable::forget(std::uint32_t id) {
  sessions_.erase(id);
}

}  // namespace railhead::daemon
