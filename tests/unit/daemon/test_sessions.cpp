#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "daemon/control/sessions.hpp"
#include "ipc/liveness.hpp"
#include "ipc/pidfd.hpp"

namespace railhead::daemon {
namespace {

// What the watchers said, waited for.
struct Ends {
  void add(std::uint64_t id, ipc::Life how) {
    const std::lock_guard lock(mutex);
    all.emplace_back(id, how);
    changed.notify_all();
  }
  bool wait(std::size_t n) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(10), [&] { return all.size() >= n; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<std::uint64_t, ipc::Life>> all;
};

class Sessions : public testing::Test {
 protected:
  std::shared_ptr<Session> open() {
    auto session = table_.open({::getpid()}, ::getuid(), "job", "build", std::move(*ipc::open_own_pidfd()));
    EXPECT_TRUE(session);
    return *session;
  }
  static ipc::LivenessCell& cell(Session& s) { return *reinterpret_cast<ipc::LivenessCell*>(s.words.data()); }

  Ends ends_;
  SessionTable table_{2, [this](std::uint64_t id, ipc::Life how) { ends_.add(id, how); }};
};

TEST_F(Sessions, NumbersAreNeverUsedTwiceAndTheLimitIsNamed) {
  const auto a = open();
  const auto b = open();
  EXPECT_NE(a->id, b->id);
  const auto refused = table_.open({1}, 1, "", "", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::limit_exceeded);
  EXPECT_NE(refused.error().message().find("limits.sessions is 2"), std::string::npos);
  table_.forget(a->id);
  EXPECT_EQ(table_.find(a->id), nullptr);
  EXPECT_GT(open()->id, b->id);
  EXPECT_EQ(table_.opened(), 3U);
}

TEST_F(Sessions, AReleasedLivenessWordIsReported) {
  const auto session = open();
  auto owner = ipc::LivenessOwner::create(cell(*session));
  ASSERT_TRUE(owner);
  EXPECT_TRUE(table_.watch(*session).ok());
  EXPECT_TRUE(session->watched);
  ASSERT_TRUE(owner->release());
  ASSERT_TRUE(ends_.wait(1));
  EXPECT_EQ(ends_.all[0], (std::pair<std::uint64_t, ipc::Life>(session->id, ipc::Life::released)));
}

TEST_F(Sessions, AnEndedSessionIsNoLongerWatchedAndKeepsItsReason) {
  const auto session = open();
  auto owner = ipc::LivenessOwner::create(cell(*session));
  ASSERT_TRUE(owner);
  EXPECT_TRUE(table_.watch(*session).ok());
  table_.end(*session, "evicted");
  table_.end(*session, "again");
  EXPECT_TRUE(session->ended);
  EXPECT_EQ(session->end_reason, "evicted");
  // Not watched any more: the release below must not be told.
  ASSERT_TRUE(owner->release());
  const auto other = open();
  auto second = ipc::LivenessOwner::create(cell(*other));
  EXPECT_TRUE(table_.watch(*other).ok());
  ASSERT_TRUE(second->release());
  ASSERT_TRUE(ends_.wait(1));
  EXPECT_EQ(ends_.all.size(), 1U);
  EXPECT_EQ(ends_.all[0].first, other->id);
  session->watched = false;
  EXPECT_TRUE(table_.watch(*session).ok());
  EXPECT_FALSE(session->watched);
}

// No thread can be started while this lives: none has room for such a stack.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge = before_;
    pthread_attr_setstacksize(&huge, std::size_t{1} << 48);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
  }
  ~NoThreads() { pthread_setattr_default_np(&before_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST_F(Sessions, AWatchThatFailsIsSaidOnceAndTriedAgain) {
  const auto session = open();
  auto owner = ipc::LivenessOwner::create(cell(*session));
  ASSERT_TRUE(owner);
  {
    const NoThreads none;
    const Status failed = table_.watch(*session);
    EXPECT_EQ(failed.code(), Code::system) << failed.message();
    EXPECT_TRUE(table_.watch(*session).ok()) << "said before";
    EXPECT_FALSE(session->watched);
    EXPECT_EQ(session->unwatched.message(), failed.message());
  }
  EXPECT_TRUE(table_.watch(*session).ok());
  EXPECT_TRUE(session->watched);
  EXPECT_TRUE(session->unwatched.ok());
  ASSERT_TRUE(owner->release());
  EXPECT_TRUE(ends_.wait(1));
}

}  // namespace
}  // namespace railhead::daemon
