#include "client/session.hpp"

#include <chrono>
#include <utility>

#include "client/daemon_choice.hpp"

namespace railhead::client {

Result<std::shared_ptr<Session>> Session::open(const SessionConfig& config) {
  const auto deadline = ipc::Deadline::after(std::chrono::milliseconds(config.timeout));
  // A private daemon may be on its way out between our look and our hello; the second try starts a new one.
  Status last;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto socket = choose_daemon(config.daemon, config.job, deadline);
    if (!socket) return fail(socket.error());
    auto link = DaemonLink::connect({*socket, config.job, config.timeout});
    if (link) return std::shared_ptr<Session>(new Session(std::move(*link)));
    last = link.error();
    if (last.code() != Code::daemon_lost && last.code() != Code::system) break;
  }
  return fail(std::move(last));
}

}  // namespace railhead::client
