// Threads of the library take no signals: handlers of the application run on its own threads.
#pragma once

#include <pthread.h>

#include <csignal>

namespace railhead::client {

// Blocks every signal on the calling thread.
inline void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace railhead::client
