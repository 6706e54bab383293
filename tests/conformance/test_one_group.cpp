// Threads of one process that make calls on one group.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/conformance/refusals.hpp"

namespace {

// This thread is slow to take a lock: what it saw under the last one may have changed.
thread_local bool slow_locks = false;

}  // namespace

#ifndef __SANITIZE_THREAD__  // which has one of its own
// In place of the C library's, also for librailhead.
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Lock = int (*)(pthread_mutex_t*);
  static std::atomic<Lock> real{nullptr};  // no static initialiser with a guard: it might lock
  if (real == nullptr) real = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (slow_locks) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return real.load()(mutex);
}
#endif

namespace railhead::test {
namespace {

// No refusal: whoever comes second waits for room, however often another is quicker. Both ranks make the same calls,
// whichever thread makes the next one; each flies until the other rank has made it.
TEST(OneGroup, ThreadsShareTheOnlyPlaceInFlight) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 30;
  Cluster cluster({.hosts = 1});
  cluster.run({0, 0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    auto config = small_config(2, rank);
    config.depth = 1;
    config.max_handles = kThreads;
    const Group group(session, id, config);
    const auto rounds = [&group] {
      SmallCall call;
      slow_locks = true;
      for (int i = 0; i < kRounds; ++i) {
        auto result = make<rh_dispatch_result>();
        rh_handle* handle = nullptr;
        ASSERT_EQ(rh_dispatch(group.get(), &call.args, &result, &handle, nullptr), RH_OK) << rh_last_error();
        EXPECT_EQ(rh_handle_release(handle), RH_OK);
      }
    };
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(rounds);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(completed(group.get()), std::uint64_t{kThreads} * kRounds);
  });
}

}  // namespace
}  // namespace railhead::test
