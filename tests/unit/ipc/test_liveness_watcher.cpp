#include <gtest/gtest.h>
#include <signal.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "child.hpp"
#include "ipc/futex.hpp"
#include "ipc/liveness_watcher.hpp"
#include "ipc/segment.hpp"

namespace railhead::ipc {
namespace {

using namespace std::chrono_literals;
using test::Child;
using Method = LivenessWatcher::Method;

// What was reported, and a wait for it.
class Reports {
 public:
  LifeEnded callback() {
    return [this](std::uint64_t id, Life how) {
      const std::lock_guard lock(mutex_);
      seen_.emplace(id, how);
      changed_.notify_all();
    };
  }
  // The first report of `id`; `alive` when none came.
  Life await(std::uint64_t id) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, 20s, [&] { return seen_.count(id) > 0; });
    return came ? seen_.find(id)->second : Life::alive;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return seen_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::uint64_t, Life> seen_;
};

class LivenessWatcherTest : public ::testing::TestWithParam<Method> {
 protected:
  void SetUp() override {
    if (GetParam() == Method::best && !has_futex_waitv()) GTEST_SKIP() << "this kernel has no futex_waitv";
    auto made = Segment::create("liveness", 300 * sizeof(LivenessCell));
    ASSERT_TRUE(made) << made.error().to_string();
    segment_ = std::move(*made);
  }
  LivenessCell& cell(std::size_t i) { return reinterpret_cast<LivenessCell*>(segment_.data())[i]; }

  // A process that owns cell `i` and sleeps; returns when it owns it.
  std::unique_ptr<Child> owner_of(std::size_t i) {
    auto child = std::make_unique<Child>([&] {
      const auto owner = LivenessOwner::create(cell(i));
      if (!owner) return 1;
      for (;;) ::pause();
    });
    while (life_of(cell(i)) != Life::alive) std::this_thread::yield();
    return child;
  }

  std::unique_ptr<LivenessWatcher> start() { return *LivenessWatcher::start(reports_.callback(), GetParam()); }

  Segment segment_;
  Reports reports_;
};

TEST_P(LivenessWatcherTest, ReportsTheKilledAndOnlyThem) {
  const auto first = owner_of(0);
  const auto second = owner_of(1);
  const auto watcher = start();
  ASSERT_TRUE(watcher->add(10, cell(0)));
  ASSERT_TRUE(watcher->add(11, cell(1)));
  second->kill_now();
  EXPECT_EQ(reports_.await(11), Life::died);
  EXPECT_EQ(reports_.count(), 1U);
  EXPECT_EQ(watcher->size(), 1U);
  first->kill_now();
  EXPECT_EQ(reports_.await(10), Life::died);
}

TEST_P(LivenessWatcherTest, CleanEndIsReleased) {
  auto owner = LivenessOwner::create(cell(0));
  ASSERT_TRUE(owner);
  const auto watcher = start();
  ASSERT_TRUE(watcher->add(1, cell(0)));
  ASSERT_TRUE(owner->release());
  EXPECT_EQ(reports_.await(1), Life::released);
}

TEST_P(LivenessWatcherTest, WordsThatEndedBeforeAreReportedAtOnce) {
  auto child = owner_of(0);
  child->kill_now();
  child->wait();
  const auto watcher = start();
  ASSERT_TRUE(watcher->add(1, cell(0)));
  ASSERT_TRUE(watcher->add(2, cell(1)));
  EXPECT_EQ(reports_.await(1), Life::died);
  EXPECT_EQ(reports_.await(2), Life::released);
}

TEST_P(LivenessWatcherTest, WordWrittenByOthersIsTampered) {
  auto owner = LivenessOwner::create(cell(0));
  ASSERT_TRUE(owner);
  const std::uint32_t before = cell(0).word;
  const auto watcher = start();
  ASSERT_TRUE(watcher->add(1, cell(0)));
  ASSERT_TRUE(watcher->add(2, cell(1)));
  ASSERT_EQ(reports_.await(2), Life::released) << "by now it has looked at the first";
  store_release(cell(0).word, before ^ 1U);
  futex_wake(cell(0).word, 1);
  EXPECT_EQ(reports_.await(1), Life::tampered);
  store_release(cell(0).word, before);
}

TEST_P(LivenessWatcherTest, RemovedWordsAreNotReported) {
  const auto first = owner_of(0);
  const auto second = owner_of(1);
  const auto watcher = start();
  ASSERT_TRUE(watcher->add(1, cell(0)));
  ASSERT_TRUE(watcher->add(2, cell(1)));
  EXPECT_TRUE(watcher->remove(1));
  EXPECT_FALSE(watcher->remove(1));
  EXPECT_FALSE(watcher->remove(99));
  first->kill_now();
  first->wait();
  second->kill_now();
  EXPECT_EQ(reports_.await(2), Life::died);
  EXPECT_EQ(reports_.count(), 1U);
}

// A removed word's memory may go at once, while the kernel still sleeps on it.
TEST_P(LivenessWatcherTest, MemoryMayGoAfterRemove) {
  auto other = Segment::create("other", page_bytes());
  ASSERT_TRUE(other);
  const auto survivor = owner_of(0);
  auto* gone = reinterpret_cast<LivenessCell*>(other->data());
  auto owner = LivenessOwner::create(*gone);
  const auto watcher = start();
  ASSERT_TRUE(watcher->add(1, *gone));
  ASSERT_TRUE(watcher->add(2, cell(0)));
  ASSERT_TRUE(watcher->remove(1));
  ASSERT_TRUE(owner->release());
  *other = Segment();
  survivor->kill_now();
  EXPECT_EQ(reports_.await(2), Life::died);
}

TEST_P(LivenessWatcherTest, CallbacksMayAddAndRemove) {
  const auto first = owner_of(0);
  const auto second = owner_of(1);
  LivenessWatcher* self = nullptr;
  const auto report = reports_.callback();
  const auto watcher = *LivenessWatcher::start(
      [&](std::uint64_t id, Life how) {
        if (id == 1) self->add(2, cell(1));
        self->remove(77);
        report(id, how);
      },
      GetParam());
  self = watcher.get();
  ASSERT_TRUE(watcher->add(1, cell(0)));
  first->kill_now();
  EXPECT_EQ(reports_.await(1), Life::died);
  second->kill_now();
  EXPECT_EQ(reports_.await(2), Life::died);
}

TEST_P(LivenessWatcherTest, FullWatcherRefuses) {
  const auto owner = owner_of(0);
  const auto watcher = start();
  for (std::uint64_t id = 0; id < LivenessWatcher::kCapacity; ++id) ASSERT_TRUE(watcher->add(id, cell(0)));
  EXPECT_FALSE(watcher->add(1000, cell(0)));
}

TEST_P(LivenessWatcherTest, PoolGrowsOneThreadPerCapacity) {
  const auto owner = owner_of(0);
  const auto last = owner_of(1);
  LivenessPool pool(reports_.callback(), GetParam());
  EXPECT_EQ(pool.threads(), 0U);
  for (std::uint64_t id = 0; id < 2 * LivenessWatcher::kCapacity; ++id) ASSERT_TRUE(pool.add(id, cell(0)));
  EXPECT_EQ(pool.threads(), 2U);
  ASSERT_TRUE(pool.add(5000, cell(1)));
  EXPECT_EQ(pool.threads(), 3U);
  EXPECT_TRUE(pool.remove(3));
  ASSERT_TRUE(pool.add(5001, cell(0)));
  EXPECT_EQ(pool.threads(), 3U);
  last->kill_now();
  EXPECT_EQ(reports_.await(5000), Life::died);
  owner->kill_now();
  for (const std::uint64_t id : {0ULL, 126ULL, 127ULL, 253ULL, 5001ULL})
    EXPECT_EQ(reports_.await(id), Life::died) << id;
  EXPECT_FALSE(pool.remove(0));
}

INSTANTIATE_TEST_SUITE_P(Methods, LivenessWatcherTest, ::testing::Values(Method::best, Method::poll),
                         [](const auto& param) { return param.param == Method::best ? "Waitv" : "Poll"; });

}  // namespace
}  // namespace railhead::ipc
