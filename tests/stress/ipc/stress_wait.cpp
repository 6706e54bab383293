// Wake words between two processes.
#include <gtest/gtest.h>

#include <cstdio>

#include "ipc/segment.hpp"
#include "ipc/wait.hpp"
#include "unit/ipc/child.hpp"

namespace railhead::ipc {
namespace {

using namespace std::chrono_literals;
using test::Child;

struct Table {
  WakeWord words[2];
  alignas(64) std::uint64_t counts[2];
};

// Says round after round and waits for the other's answer; returns how often a wait ran into its tick.
int play(Table& table, int me, std::uint64_t rounds, const WaitPolicy& policy) {
  int ticks = 0;
  const int other = 1 - me;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    if (me == 0) {
      store_release(table.counts[0], round);
      notify(table.words[1], 1);
    }
    const auto answered = [&] { return load_acquire(table.counts[other]) >= round; };
    WaitResult result;
    while ((result = wait_until(table.words[me], 1, Deadline::after(20s), policy, answered)) == WaitResult::tick)
      ++ticks;
    if (result != WaitResult::ready) return -1;
    if (me == 1) {
      store_release(table.counts[1], round);
      notify(table.words[0], 1);
    }
  }
  return ticks;
}

class WaitStress : public ::testing::TestWithParam<WaitPolicy> {};

// A lost wake would cost a tick of 100 ms; two ticks are allowed for a machine that stalls.
TEST_P(WaitStress, PingPongLosesNoWake) {
  // Spinning on a core that somebody else needs takes a time slice per round.
  const std::uint64_t rounds = GetParam().spins > 0 ? 5'000 : 100'000;
  auto memory = Segment::create("wait", sizeof(Table));
  ASSERT_TRUE(memory);
  auto& table = *reinterpret_cast<Table*>(memory->data());
  Child other([&] { return play(table, 1, rounds, GetParam()) >= 0 ? 0 : 1; });
  const auto start = Deadline::Clock::now();
  const int ticks = play(table, 0, rounds, GetParam());
  const std::chrono::duration<double, std::micro> took = Deadline::Clock::now() - start;
  EXPECT_GE(ticks, 0) << "timeout";
  EXPECT_LE(ticks, 2);
  EXPECT_EQ(other.wait(), 0);
  std::printf("round trip %.2f us, ticks %d\n", took.count() / static_cast<double>(rounds), ticks);
}

INSTANTIATE_TEST_SUITE_P(Policies, WaitStress,
                         ::testing::Values(WaitPolicy{0, 0, kMaxTick}, WaitPolicy::for_load(3, 2),
                                           WaitPolicy::for_load(2, 2)),
                         [](const auto& param) {
                           return "Spins" + std::to_string(param.param.spins) + "Yields" +
                                  std::to_string(param.param.yields);
                         });

// A process killed while it sleeps, or between its announcement and its sleep, takes nobody else's wakes with it.
TEST(WaitStressKill, KilledSleeperDoesNotDisturbOthers) {
  constexpr WaitPolicy kSleepAtOnce{0, 0, kMaxTick};
  auto memory = Segment::create("wait", sizeof(Table));
  ASSERT_TRUE(memory);
  auto& table = *reinterpret_cast<Table*>(memory->data());
  int late = 0;
  for (std::uint64_t round = 1; round <= 50; ++round) {
    Child survivor([&] {
      const auto reached = [&] { return load_acquire(table.counts[0]) >= round; };
      const auto result = wait_until(table.words[0], 1, Deadline::after(20s), kSleepAtOnce, reached);
      return result == WaitResult::ready ? 0 : static_cast<int>(result);
    });
    {
      const Child victim([&] {
        return static_cast<int>(
            wait_until(table.words[0], 1, Deadline::after(20s), kSleepAtOnce, [] { return false; }));
      });
    }
    store_release(table.counts[0], round);
    notify(table.words[0], 1);
    if (survivor.wait() != 0) ++late;
  }
  EXPECT_LE(late, 1);
}

}  // namespace
}  // namespace railhead::ipc
