// How soon the end of a process is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "ipc/deadline.hpp"
#include "ipc/futex.hpp"
#include "ipc/liveness_watcher.hpp"
#include "ipc/segment.hpp"
#include "unit/ipc/child.hpp"

namespace railhead::ipc {
namespace {

using namespace std::chrono_literals;
using test::Child;

constexpr std::size_t kRounds = 100;
constexpr double kLimitMs = 50;

[[noreturn]] void sleep_forever() {
  for (;;) ::pause();
}

// A process that owns the cell. With a grandchild that holds all its descriptors and mappings and outlives it, until
// `stop` is set.
std::unique_ptr<Child> spawn_owner(LivenessCell& cell, bool grandchild, std::uint32_t& stop) {
  auto child = std::make_unique<Child>([&] {
    const auto owner = LivenessOwner::create(cell);
    if (!owner) return 1;
    if (grandchild && ::fork() == 0) {
      while (load_acquire(stop) == 0) futex_wait(stop, 0, Deadline::after(1s));
      ::_exit(0);
    }
    sleep_forever();
  });
  const Deadline deadline = Deadline::after(20s);
  while (!is_alive(cell) && !deadline.expired()) std::this_thread::yield();
  EXPECT_TRUE(is_alive(cell));
  return child;
}

class LivenessStress : public ::testing::TestWithParam<bool> {};

TEST_P(LivenessStress, KillIsNoticedAtOnce) {
  if (!has_futex_waitv()) GTEST_SKIP() << "this kernel has no futex_waitv";
  auto memory = Segment::create("liveness", (kRounds + 1) * sizeof(LivenessCell));
  ASSERT_TRUE(memory);
  auto* const cells = reinterpret_cast<LivenessCell*>(memory->data());
  std::uint32_t& stop = cells[kRounds].owner_private[0];
  std::vector<std::unique_ptr<Child>> owners;
  for (std::size_t i = 0; i < kRounds; ++i) owners.push_back(spawn_owner(cells[i], GetParam(), stop));

  std::atomic<std::uint64_t> ended{0};
  std::atomic<Deadline::Clock::rep> noticed{0};
  LivenessPool pool([&](std::uint64_t, Life how) {
    EXPECT_EQ(how, Life::died);
    noticed.store(Deadline::Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    ended.fetch_add(1, std::memory_order_release);
  });
  for (std::size_t i = 0; i < kRounds; ++i) ASSERT_TRUE(pool.add(i, cells[i]));

  std::vector<double> times;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const auto start = Deadline::Clock::now();
    owners[i]->kill_now();
    while (ended.load(std::memory_order_acquire) <= i && Deadline::Clock::now() < start + 20s)
      std::this_thread::yield();
    ASSERT_EQ(ended.load(), i + 1);
    const auto took = Deadline::Clock::duration(noticed.load()) - start.time_since_epoch();
    times.push_back(std::chrono::duration<double, std::milli>(took).count());
    owners[i]->wait();
  }
  store_release(stop, 1U);
  futex_wake(stop, kFutexWakeAll);

  std::sort(times.begin(), times.end());
  std::printf("kill to callback: p50 %.3f ms, p99 %.3f ms, max %.3f ms\n", times[kRounds / 2],
              times[kRounds * 99 / 100], times.back());
  EXPECT_LT(times[kRounds * 9 / 10], kLimitMs);
}

INSTANTIATE_TEST_SUITE_P(Grandchild, LivenessStress, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Living" : "None"; });

}  // namespace
}  // namespace railhead::ipc
