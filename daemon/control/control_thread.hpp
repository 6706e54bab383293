// The control thread: the event loop of clients, groups and timers, and everything that lives on it.
#pragma once

#include <kj/async-io.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/control/drain.hpp"
#include "daemon/control/mailbox.hpp"
#include "daemon/control/rpc_server.hpp"
#include "daemon/mesh/mesh.hpp"

namespace railhead::daemon {

// Made by the daemon before the thread starts; outlives it.
struct ControlParts {
  const config::Config* config = nullptr;
  const log::Log* log = nullptr;
  mesh::HostId host;
  mesh::Mesh* mesh = nullptr;
  std::vector<Proxy*> proxies;
  ipc::DaemonPage* page = nullptr;
  int page_fd = -1;
  int listen_fd = -1;
  Mailbox* mailbox = nullptr;
  std::chrono::steady_clock::time_point started;
};

class ControlThread : private kj::TaskSet::ErrorHandler {
 public:
  ControlThread(ControlParts parts, kj::AsyncIoContext& io);

  // Until stop() has run its course. `ready` is called when clients can connect.
  void run(const std::function<void()>& ready);
  // On this thread (through the mailbox).
  void stop(bool at_once);
  void liveness_ended(std::uint64_t session, ipc::Life how);
  void mesh_message(const mesh::HostId& from, std::vector<std::byte> bytes);
  void mesh_up(const DaemonEntry& peer);
  void mesh_down(const DaemonEntry& peer, const Status& reason);
  // Something has failed for good, but the daemon lives: operators see it from now on.
  void trouble(const std::string& text);
  void mesh_refused(const Status& reason);
  [[nodiscard]] GroupRegistry& groups() { return *groups_; }
  // Rails of a group that still is known.
  void with_group(const GroupKey& key, const std::function<void(LocalGroup&)>& f);

 private:
  void taskFailed(kj::Exception&& exception) override;
  void after(std::chrono::milliseconds delay, std::function<void()> task);
  kj::Promise<void> accept_loop();
  void session_opened(const std::shared_ptr<Session>& session);
  void session_over(const std::shared_ptr<Session>& session, const std::string& how, bool fenced);
  void watch_slow();
  void watch_private();
  void watch_stop();
  void make_room(bool at_once);
  void remove_socket();
  void retain(const DaemonEntry& peer, bool wanted);
  void systemd_watchdog();
  kj::Promise<std::string> snapshot(const std::string& what);

  ControlParts parts_;
  kj::AsyncIoContext& io_;
  kj::Own<kj::ConnectionReceiver> listener_;
  std::unique_ptr<SessionTable> sessions_;
  std::unique_ptr<GroupRegistry> groups_;
  TurnedAway turned_away_;
  TurnedAway not_accepted_;  // of our own clients
  ControlPlane plane_;
  kj::Own<kj::PromiseFulfiller<void>> done_;
  std::map<std::uint32_t, kj::Promise<void>> exits_;  // pidfd watches by session
  std::string socket_;                                // where it is now
  bool owns_socket_;                                  // else systemd does
  std::optional<Drain> drain_;
  std::vector<std::string> troubles_;
  std::chrono::steady_clock::time_point last_session_;
  std::map<std::pair<GroupKey, std::uint32_t>, std::uint64_t> slow_said_;  // by group and rank: the newest operation
  // Last, so that it ends first: connections that are still open call back into everything above when they go.
  kj::TaskSet tasks_;
};

}  // namespace railhead::daemon
