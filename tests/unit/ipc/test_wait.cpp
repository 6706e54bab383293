#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "ipc/futex.hpp"
#include "ipc/wait.hpp"

namespace railhead::ipc {
namespace {

using namespace std::chrono_literals;

constexpr WaitPolicy kSleepAtOnce{0, 0, kMaxTick};

bool somebody_sleeps(const WakeWord& word) {
  return load_acquire(word.sleep_mask) != 0;
}
void await_sleeper(const WakeWord& word) {
  while (!somebody_sleeps(word)) std::this_thread::yield();
}

// Waits through the ticks.
template <class Predicate>
WaitResult wait_long(WakeWord& word, std::uint32_t events, Predicate predicate, WaitPolicy policy = kSleepAtOnce) {
  const Deadline deadline = Deadline::after(20s);
  WaitResult result;
  do {
    result = wait_until(word, events, deadline, policy, predicate);
  } while (result == WaitResult::tick);
  return result;
}

TEST(Wait, ReadyAtOnceTouchesNothing) {
  WakeWord word{};
  EXPECT_EQ(wait_until(word, 1, Deadline::after(0ms), kSleepAtOnce, [] { return true; }), WaitResult::ready);
  EXPECT_EQ(word.sleep_mask, 0U);
}

TEST(Wait, DeadlineIsATimeout) {
  WakeWord word{};
  const auto start = Deadline::Clock::now();
  EXPECT_EQ(wait_until(word, 1, Deadline::after(5ms), kSleepAtOnce, [] { return false; }), WaitResult::timeout);
  EXPECT_GE(Deadline::Clock::now() - start, 5ms);
  const WaitPolicy spinning = WaitPolicy::for_load(1, 2);
  EXPECT_EQ(wait_until(word, 1, Deadline::after(1ms), spinning, [] { return false; }), WaitResult::timeout);
}

TEST(Wait, TickComesBeforeAFarDeadline) {
  WakeWord word{};
  const WaitPolicy policy{0, 0, 3ms};
  EXPECT_EQ(wait_until(word, 1, Deadline::never(), policy, [] { return false; }), WaitResult::tick);
}

TEST(Wait, TickIsNeverAboveItsLimit) {
  WakeWord word{};
  const WaitPolicy policy{0, 0, std::chrono::hours(1)};
  EXPECT_EQ(wait_until(word, 1, Deadline::never(), policy, [] { return false; }), WaitResult::tick);
}

TEST(Wait, NotifyWakesTheSleeper) {
  WakeWord word{};
  std::atomic<int> data{0};
  WaitResult result = WaitResult::timeout;
  std::thread sleeper(
      [&] { result = wait_long(word, 0b10, [&] { return data.load(std::memory_order_acquire) == 7; }); });
  await_sleeper(word);
  data.store(7, std::memory_order_release);
  notify(word, 0b10);
  sleeper.join();
  EXPECT_EQ(result, WaitResult::ready);
  EXPECT_EQ(word.sleep_mask, 0U);
}

TEST(Wait, NotifyWithoutSleepersChangesNothing) {
  WakeWord word{};
  notify(word, 0xFF);
  EXPECT_EQ(word.value, 0U);
  word.sleep_mask = 0b100;
  notify(word, 0b011);
  EXPECT_EQ(word.value, 0U);
  EXPECT_EQ(word.sleep_mask, 0b100U);
}

TEST(Wait, NotifyLeavesTheSleepersOfOtherEventsAnnounced) {
  WakeWord word{};
  word.sleep_mask = 0b110;
  notify(word, 0b011);
  EXPECT_EQ(word.sleep_mask, 0b100U);
  EXPECT_EQ(word.value, 1U);
}

TEST(Wait, OneNotifyWakesAllThatWaitForIt) {
  WakeWord word{};
  std::atomic<int> data{0};
  std::atomic<int> ready{0};
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 4; ++i) {
    sleepers.emplace_back([&] {
      const auto result = wait_long(word, 1, [&] { return data.load(std::memory_order_acquire) == 1; });
      if (result == WaitResult::ready) ready.fetch_add(1);
    });
  }
  await_sleeper(word);
  data.store(1, std::memory_order_release);
  notify(word, 1);
  for (auto& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(ready.load(), 4);
}

// Both directions at once, one word: a waiter's mask bit must survive the wake of the other one's event.
TEST(Wait, TwoEventsOnOneWordDoNotStealEachOthersWakes) {
  constexpr std::uint64_t kRounds = 5000;
  WakeWord word{};
  std::atomic<std::uint64_t> ping{0};
  std::atomic<std::uint64_t> pong{0};
  std::atomic<int> bad{0};
  constexpr int kGranted = 5;  // to a machine that stalls
  const auto play = [&](std::atomic<std::uint64_t>& mine, std::atomic<std::uint64_t>& theirs, std::uint32_t my_event,
                        std::uint32_t their_event, std::uint64_t lead) {
    for (std::uint64_t round = 1; round <= kRounds && bad.load() <= kGranted; ++round) {
      const auto start = Deadline::Clock::now();
      const auto arrived = [&] { return theirs.load(std::memory_order_acquire) + lead >= round; };
      while (wait_until(word, their_event, Deadline(start + 5s), kSleepAtOnce, arrived) == WaitResult::tick) {
      }
      if (Deadline::Clock::now() - start >= kMaxTick - 5ms) bad.fetch_add(1);
      mine.store(round, std::memory_order_release);
      notify(word, my_event);
    }
  };
  std::thread other([&] { play(pong, ping, 0b10, 0b01, 0); });
  play(ping, pong, 0b01, 0b10, 1);
  other.join();
  EXPECT_LE(bad.load(), kGranted) << "each is a wait that only its tick ended";
}

TEST(Wait, PoisonWakesAndStays) {
  WakeWord word{};
  WaitResult result = WaitResult::timeout;
  std::thread sleeper([&] { result = wait_long(word, 1, [] { return false; }); });
  await_sleeper(word);
  poison(word);
  sleeper.join();
  EXPECT_EQ(result, WaitResult::poisoned);
  EXPECT_TRUE(is_poisoned(word));
  EXPECT_EQ(wait_until(word, 1, Deadline::never(), kSleepAtOnce, [] { return false; }), WaitResult::poisoned);
  EXPECT_EQ(wait_until(word, 1, Deadline::never(), kSleepAtOnce, [] { return true; }), WaitResult::poisoned);
}

TEST(Wait, CountersWrapNeverTouchesPoison) {
  WakeWord word{};
  word.value = kPoisonBit - 1;
  word.sleep_mask = 1;
  notify(word, 1);
  EXPECT_EQ(word.value, 0U);
  word.value = ~0U;
  word.sleep_mask = 1;
  notify(word, 1);
  EXPECT_EQ(word.value, kPoisonBit);
}

// Bits that a waiter left behind cost one idle wake and are gone.
TEST(Wait, StaleMaskBitsAreClearedByTheNextNotify) {
  WakeWord word{};
  EXPECT_EQ(wait_until(word, 1, Deadline::after(1ms), kSleepAtOnce, [] { return false; }), WaitResult::timeout);
  EXPECT_EQ(word.sleep_mask, 1U);
  notify(word, 1);
  EXPECT_EQ(word.sleep_mask, 0U);
  EXPECT_EQ(word.value, 1U);
  notify(word, 1);
  EXPECT_EQ(word.value, 1U);
}

TEST(WaitPolicy, SpinsOnlyWhereACoreIsFree) {
  EXPECT_GT(WaitPolicy::for_load(2, 2).spins, 0U);
  EXPECT_EQ(WaitPolicy::for_load(3, 2).spins, 0U);
  EXPECT_LE(WaitPolicy::for_load(3, 2).tick, kMaxTick);
}

}  // namespace
}  // namespace railhead::ipc
