#include <gtest/gtest.h>
#include <linux/futex.h>
#include <pthread.h>

#include <cstddef>
#include <new>
#include <thread>
#include <utility>

#include "child.hpp"
#include "ipc/liveness.hpp"
#include "ipc/segment.hpp"

namespace railhead::ipc {
namespace {

using test::Child;

// Owns the cell and is never destroyed: the end of the thread is all that ends it.
void hold_for_good(LivenessCell& cell) {
  alignas(LivenessOwner) std::byte storage[sizeof(LivenessOwner)];
  auto owner = LivenessOwner::create(cell);
  ASSERT_TRUE(owner) << owner.error().to_string();
  new (storage) LivenessOwner(std::move(*owner));
}

class LivenessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = Segment::create("liveness", page_bytes());
    ASSERT_TRUE(made) << made.error().to_string();
    segment_ = std::move(*made);
  }
  LivenessCell& cell() { return *reinterpret_cast<LivenessCell*>(segment_.data()); }

  Segment segment_;
};

TEST(Liveness, ClassifiesWords) {
  EXPECT_EQ(classify_life(0), Life::released);
  EXPECT_EQ(classify_life(1234 | FUTEX_WAITERS), Life::alive);
  EXPECT_EQ(classify_life(FUTEX_OWNER_DIED), Life::died);
  EXPECT_EQ(classify_life(FUTEX_OWNER_DIED | FUTEX_WAITERS), Life::died);
  EXPECT_EQ(classify_life(1234), Life::tampered);
  EXPECT_EQ(classify_life(FUTEX_WAITERS), Life::tampered);
}

TEST_F(LivenessTest, OwnerIsAliveUntilReleased) {
  EXPECT_EQ(life_of(cell()), Life::released);
  auto owner = LivenessOwner::create(cell());
  ASSERT_TRUE(owner) << owner.error().to_string();
  EXPECT_TRUE(is_alive(cell()));
  EXPECT_EQ(cell().word, static_cast<std::uint32_t>(::gettid()) | FUTEX_WAITERS);
  EXPECT_TRUE(owner->release());
  EXPECT_EQ(life_of(cell()), Life::released);
  EXPECT_TRUE(owner->release()) << "idempotent";
}

TEST_F(LivenessTest, DestructionReleases) {
  { const auto owner = LivenessOwner::create(cell()); }
  EXPECT_EQ(cell().word, 0U);
}

TEST_F(LivenessTest, MoveKeepsOneOwner) {
  auto first = LivenessOwner::create(cell());
  ASSERT_TRUE(first);
  {
    const LivenessOwner second(std::move(*first));
    EXPECT_TRUE(is_alive(cell()));
  }
  EXPECT_EQ(life_of(cell()), Life::released);
}

TEST_F(LivenessTest, UsedCellIsRefused) {
  const auto owner = LivenessOwner::create(cell());
  ASSERT_TRUE(owner);
  const auto second = LivenessOwner::create(cell());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::invalid_usage);
  EXPECT_TRUE(is_alive(cell()));
}

TEST_F(LivenessTest, EndOfTheThreadIsDeath) {
  std::thread([&] {
    hold_for_good(cell());
    EXPECT_TRUE(is_alive(cell()));
  }).join();
  EXPECT_EQ(life_of(cell()), Life::died);
}

TEST_F(LivenessTest, AnotherThreadCannotRelease) {
  auto owner = LivenessOwner::create(cell());
  ASSERT_TRUE(owner);
  std::thread([&] {
    const auto released = owner->release();
    ASSERT_FALSE(released);
    EXPECT_EQ(released.error().code(), Code::invalid_usage);
  }).join();
  EXPECT_TRUE(is_alive(cell()));
}

TEST_F(LivenessTest, KilledProcessIsDeadToEveryMapping) {
  auto reader = Segment::map(UniqueFd(::fcntl(segment_.fd(), F_DUPFD_CLOEXEC, 0)), segment_.bytes(), Access::read_only,
                             Prefault::yes);
  ASSERT_TRUE(reader);
  Child child([&] {
    const auto owner = LivenessOwner::create(cell());
    if (!owner) return 1;
    ::raise(SIGKILL);
    return 2;
  });
  EXPECT_EQ(child.wait(), 1000 + SIGKILL);
  EXPECT_EQ(life_of(*reinterpret_cast<const LivenessCell*>(reader->data())), Life::died);
}

TEST_F(LivenessTest, ExecIsDeath) {
  Child child([&] {
    const auto owner = LivenessOwner::create(cell());
    if (!owner) return 1;
    ::execl("/bin/true", "true", static_cast<char*>(nullptr));
    return 2;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(life_of(cell()), Life::died);
}

TEST_F(LivenessTest, ForkedChildNeitherHoldsNorEndsIt) {
  auto owner = LivenessOwner::create(cell());
  ASSERT_TRUE(owner);
  Child child([&] { return owner->release() ? 1 : 0; });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(is_alive(cell()));
}

// Two words and a robust mutex of the application's own on one thread: each goes its way.
TEST_F(LivenessTest, SharesTheThreadWithOtherRobustMutexes) {
  auto* cells = reinterpret_cast<LivenessCell*>(segment_.data());
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t application;
  pthread_mutex_init(&application, &attributes);
  std::thread([&] {
    auto first = LivenessOwner::create(cells[0]);
    pthread_mutex_lock(&application);
    hold_for_good(cells[1]);
    ASSERT_TRUE(first->release());
    EXPECT_TRUE(is_alive(cells[1]));
  }).join();
  EXPECT_EQ(life_of(cells[0]), Life::released);
  EXPECT_EQ(life_of(cells[1]), Life::died);
  EXPECT_EQ(pthread_mutex_lock(&application), EOWNERDEAD);
  pthread_mutex_consistent(&application);
  pthread_mutex_unlock(&application);
  pthread_mutex_destroy(&application);
  pthread_mutexattr_destroy(&attributes);
}

}  // namespace
}  // namespace railhead::ipc
