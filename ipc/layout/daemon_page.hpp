// The daemon page: one page per daemon, read-only for every client. It says whether the daemon lives and which proxies
// sleep, so that a client rings a bell only when somebody needs waking.
#pragma once

#include <atomic>
#include <cstdint>

#include "ipc/liveness.hpp"

namespace railhead::ipc {

inline constexpr std::uint32_t kMaxProxies = 32;

struct DaemonPage {
  LivenessCell alive;                               // owned by the daemon's control thread; its death shows here
  alignas(64) std::uint32_t sleeping[kMaxProxies];  // writer: proxy i; 1 = asleep, ring its bell
};
static_assert(sizeof(DaemonPage) <= 4096);

// A proxy about to sleep: set, then re-scan everything that could have been submitted, then sleep.
inline void set_sleeping(DaemonPage& page, std::uint32_t proxy, bool asleep) {
  // relaxed: the fence orders it.
  store_relaxed(page.sleeping[proxy], asleep ? 1U : 0U);
  // seq_cst fence: the flag is visible before the re-scan reads the rings. A seq_cst store alone does not order the
  // weaker loads after it (on aarch64 they pass it); pairs with the fence below.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// After submitting: does the proxy need a bell?
inline bool needs_bell(const DaemonPage& page, std::uint32_t proxy) {
  // seq_cst fence: the submission is visible before the flag is read; either we see the flag or the proxy sees the
  // submission in its re-scan.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // relaxed: ordered by the fence.
  return load_relaxed(page.sleeping[proxy]) != 0;
}

}  // namespace railhead::ipc
