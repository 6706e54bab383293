// The daemon's side of the control protocol: checks what clients say, hands it to sessions and groups, answers with
// statuses. No exception of ours reaches a client, no nonsense of a client reaches the rest.
#pragma once

#include <kj/timer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/control/sessions.hpp"
#include "daemon/control/turned_away.hpp"
#include "daemon/group/registry.hpp"
#include "ipc/rpc.hpp"
#include "ipc/schema/control.capnp.h"

namespace railhead::daemon {

// Who is at the other end of a connection, by the kernel's word.
struct Credentials {
  std::uint32_t uid = 0;
  std::int32_t pid = 0;
};

// What the servers work on. Control thread only.
struct ControlPlane {
  const config::Config* config = nullptr;
  const log::Log* log = nullptr;
  mesh::HostId host;
  std::uint32_t own_uid = 0;
  kj::Timer* timer = nullptr;
  SessionTable* sessions = nullptr;
  GroupRegistry* groups = nullptr;
  const TurnedAway* turned_away = nullptr;
  int page_fd = -1;
  std::vector<int> bells;
  std::function<Status()> accepting;                                          // why not, while the daemon drains
  std::function<void(const std::shared_ptr<Session>&)> opened;                // a session began: watch its pidfd
  std::function<void(const std::shared_ptr<Session>&)> hung_up;               // its connection is gone
  std::function<kj::Promise<std::string>(const std::string& what)> snapshot;  // JSON for operators
};

// The bootstrap capability of one connection, which `hang_up` closes.
schema::Daemon::Client make_daemon_server(ControlPlane& plane, Credentials who, std::function<void()> hang_up);

// Refuses unknown users: empty list = everybody the socket lets in.
bool is_allowed(const ControlPlane& plane, std::uint32_t uid);

}  // namespace railhead::daemon
