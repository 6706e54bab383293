#include "client/kj_signals.hpp"

#include <csignal>

namespace railhead::client {

kj::AsyncIoContext setup_async_io() {
  struct sigaction pipe {};
  struct sigaction reserved {};
  ::sigaction(SIGPIPE, nullptr, &pipe);
  ::sigaction(SIGUSR1, nullptr, &reserved);
  auto io = kj::setupAsyncIo();
  ::sigaction(SIGPIPE, &pipe, nullptr);
  ::sigaction(SIGUSR1, &reserved, nullptr);
  return io;
}

}  // namespace railhead::client
