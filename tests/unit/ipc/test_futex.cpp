#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "ipc/futex.hpp"
#include "ipc/segment.hpp"
#include "ipc/shared_word.hpp"

namespace railhead::ipc {
namespace {

using namespace std::chrono_literals;

// Wakes until somebody was woken: a wake before the sleeper sleeps is not an error of the test.
void wake_one(const std::uint32_t& word, std::uint32_t bits = kFutexAllBits) {
  while (futex_wake(word, 1, bits) == 0) std::this_thread::yield();
}

TEST(Futex, ChangedWordDoesNotSleep) {
  const std::uint32_t word = 5;
  EXPECT_EQ(futex_wait(word, 4, Deadline::never()), FutexResult::changed);
}

TEST(Futex, DeadlineEndsTheSleep) {
  const std::uint32_t word = 5;
  EXPECT_EQ(futex_wait(word, 5, Deadline::after(2ms)), FutexResult::timeout);
  EXPECT_EQ(futex_wait(word, 5, Deadline::after(-1h)), FutexResult::timeout);
}

TEST(Futex, WakeEndsTheSleep) {
  const std::uint32_t word = 5;
  FutexResult result = FutexResult::failed;
  std::thread sleeper([&] { result = futex_wait(word, 5, Deadline::after(20s)); });
  wake_one(word);
  sleeper.join();
  EXPECT_EQ(result, FutexResult::woken);
}

TEST(Futex, WakeReachesOnlyTheMatchingBits) {
  const std::uint32_t word = 5;
  std::thread sleeper([&] { futex_wait(word, 5, Deadline::after(20s), 0b10); });
  wake_one(word, 0b110);
  sleeper.join();
  EXPECT_EQ(futex_wake(word, kFutexWakeAll, 0b01), 0U);
}

TEST(Futex, BadAddressIsAnErrorNotACrash) {
  const auto& nowhere = *reinterpret_cast<const std::uint32_t*>(std::uintptr_t{4096});
  EXPECT_EQ(futex_wait(nowhere, 0, Deadline::after(1s)), FutexResult::failed);
}

// A peer that sees the word read-only, at another address, sleeps on the same futex.
TEST(Futex, WorksOverReadOnlyMappings) {
  auto owner = Segment::create("futex", page_bytes());
  ASSERT_TRUE(owner);
  auto peer = Segment::map(UniqueFd(::fcntl(owner->fd(), F_DUPFD_CLOEXEC, 0)), owner->bytes(), Access::read_only,
                           Prefault::yes);
  ASSERT_TRUE(peer);
  const auto& seen = *reinterpret_cast<const std::uint32_t*>(peer->data());
  FutexResult result = FutexResult::failed;
  std::thread sleeper([&] { result = futex_wait(seen, 0, Deadline::after(20s)); });
  wake_one(*reinterpret_cast<const std::uint32_t*>(owner->data()));
  sleeper.join();
  EXPECT_EQ(result, FutexResult::woken);
}

TEST(FutexWaitv, AnyWordWakes) {
  if (!has_futex_waitv()) GTEST_SKIP() << "this kernel has no futex_waitv";
  const std::array<std::uint32_t, 3> words{1, 2, 3};
  const std::array<FutexWaiter, 3> waiters{{{&words[0], 1}, {&words[1], 2}, {&words[2], 3}}};
  FutexResult result = FutexResult::failed;
  std::thread sleeper([&] { result = futex_waitv(waiters, Deadline::after(20s)); });
  wake_one(words[2]);
  sleeper.join();
  EXPECT_EQ(result, FutexResult::woken);
}

TEST(FutexWaitv, ChangedWordAndDeadline) {
  if (!has_futex_waitv()) GTEST_SKIP() << "this kernel has no futex_waitv";
  const std::array<std::uint32_t, 2> words{1, 2};
  const std::array<FutexWaiter, 2> stale{{{&words[0], 1}, {&words[1], 9}}};
  EXPECT_EQ(futex_waitv(stale, Deadline::never()), FutexResult::changed);
  const std::array<FutexWaiter, 2> fresh{{{&words[0], 1}, {&words[1], 2}}};
  EXPECT_EQ(futex_waitv(fresh, Deadline::after(2ms)), FutexResult::timeout);
}

TEST(FutexWaitv, RefusesNoneAndTooMany) {
  const std::uint32_t word = 0;
  EXPECT_EQ(futex_waitv({}, Deadline::never()), FutexResult::failed);
  std::array<FutexWaiter, kFutexWaitvMax + 1> many;
  many.fill({&word, 0});
  EXPECT_EQ(futex_waitv(many, Deadline::never()), FutexResult::failed);
}

}  // namespace
}  // namespace railhead::ipc
