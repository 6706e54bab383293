#include "client/kj_signals.hpp"

#include <csignal>

namespace railhead::client {

void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

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
