#include "client/session.hpp"

#include <utility>

#include "client/daemon_choice.hpp"
#include "kernels/host/cpu.hpp"

namespace railhead::client {
namespace {

constexpr int kAttempts = 3;

}  // namespace

Result<std::shared_ptr<Session>> Session::open(const SessionConfig& config) {
  if (const auto& simd = kernels::configured_simd(); !simd) return fail(simd.error());
  const auto deadline = ipc::Deadline::after_ms(config.timeout);
  // A private daemon may be on its way out between our look and our hello; the next try starts a new one.
  Status last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto socket = choose_daemon(config.daemon, config.job, deadline);
    if (!socket) return fail(socket.error());
    auto link = DaemonLink::connect({*socket, config.job, config.timeout});
    if (link) return std::shared_ptr<Session>(new Session(std::move(*link)));
    last = link.error();
    const bool leaving =
        last.code() == Code::daemon_lost || last.code() == Code::system || last.code() == Code::unavailable;
    if (!leaving || deadline.expired()) break;
  }
  return fail(std::move(last));
}

}  // namespace railhead::client
