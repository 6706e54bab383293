#include <gmock/gmock.h>

#include <cstring>

#include "daemon/fabric/fault.hpp"
#include "fabric_pair.hpp"

namespace railhead::fabric::test {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBytes = 4096;

class Fault : public testing::Test {
 protected:
  // The faults sit on the writing side, and, as `far_faults`, on the receiving one.
  void start(const std::string& faults, const std::string& far_faults = "") {
    const auto hub = std::make_shared<LoopbackHub>();
    a_ = std::make_unique<Side>(FabricConfig{.provider = "loopback", .faults = faults, .hub = hub}, 64 * kBytes);
    b_ = std::make_unique<Side>(FabricConfig{.provider = "loopback", .faults = far_faults, .hub = hub}, 64 * kBytes);
    peers_ = connect(*a_, *b_, make_token(1));
  }

  Result<PostState> post_number(std::uint32_t number) {
    return a_->fabric->post_write({.peer = peers_.near,
                                   .local = a_->region,
                                   .local_offset = number % 64 * kBytes,
                                   .bytes = kBytes,
                                   .remote = b_->key,
                                   .remote_offset = number % 64 * kBytes,
                                   .immediate = number,
                                   .context = number});
  }

  std::vector<std::uint32_t> heard() const {
    std::vector<std::uint32_t> numbers;
    for (const auto& [peer, number] : b_->immediates) numbers.push_back(number);
    return numbers;
  }

  std::unique_ptr<Side> a_, b_;
  Connected peers_{};
};

TEST_F(Fault, ReordersWritesOfTheSender) {
  start("seed=1,reorder=8");
  for (std::uint32_t i = 0; i < 64; ++i) ASSERT_TRUE(post_number(i));
  ASSERT_TRUE(poll_until({a_.get(), b_.get()}, [&] { return b_->immediates.size() == 64 && a_->done.size() == 64; }));
  auto numbers = heard();
  EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
  std::sort(numbers.begin(), numbers.end());
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(numbers[i], i);
}

TEST_F(Fault, CountsWhatItDid) {
  start("seed=1,delay=16", "seed=1,dup=0.5");
  for (std::uint32_t i = 0; i < 64; ++i) ASSERT_TRUE(post_number(i));
  ASSERT_TRUE(poll_until({a_.get(), b_.get()}, [&] { return b_->immediates.size() > 64 && a_->done.size() == 64; }));
  EXPECT_GT(a_->fabric->describe().injected, 32U);
  EXPECT_GT(b_->fabric->describe().injected, 0U);
}

TEST_F(Fault, HoldsAWriteBackWhole) {
  start("seed=1,delay=200");
  a_->memory[0] = std::byte{0x5A};
  ASSERT_TRUE(post_number(0));
  EXPECT_FALSE(a_->fabric->arm()) << "a held write moves by polls alone";
  for (int polls = 0; b_->immediates.empty() && polls < 1000; ++polls) {
    EXPECT_TRUE(a_->done.empty());
    EXPECT_EQ(b_->memory[0], std::byte{0});
    a_->poll();
    b_->poll();
  }
  ASSERT_EQ(b_->immediates.size(), 1u);
  EXPECT_EQ(b_->memory[0], std::byte{0x5A});
}

TEST_F(Fault, AnnouncesLateWhatIsLongInPlace) {
  start("", "seed=3,delay=200");
  a_->memory[0] = std::byte{0x5A};
  ASSERT_TRUE(post_number(0));
  int polls_with_data = 0;
  while (b_->immediates.empty() && polls_with_data < 1000) {
    a_->poll();
    b_->poll();
    if (b_->memory[0] == std::byte{0x5A}) ++polls_with_data;
  }
  EXPECT_EQ(b_->immediates.size(), 1u);
  EXPECT_GT(polls_with_data, 1);
}

TEST_F(Fault, RepeatsImmediates) {
  start("", "seed=1,dup=1");
  for (std::uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(post_number(i));
  ASSERT_TRUE(poll_until({a_.get(), b_.get()}, [&] { return b_->immediates.size() == 20; }));
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(std::ranges::count(heard(), i), 2);
}

TEST_F(Fault, ReportsARepeatedWriteOnceAndAfterItsLastCopy) {
  start("seed=1,resend=1");
  for (std::uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(post_number(i));
  ASSERT_TRUE(poll_until({a_.get(), b_.get()}, [&] { return b_->immediates.size() == 20 && a_->done.size() == 10; }));
  for (int polls = 0; polls < 100; ++polls) a_->poll();
  EXPECT_EQ(a_->done.size(), 10u);
}

TEST_F(Fault, FailsTheNthWriteByNameAndItsPeer) {
  start("fail_nth=5,delay=50");
  for (std::uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(post_number(i));
  EXPECT_EQ(post_number(5).error().code(), Code::peer_lost);
  ASSERT_TRUE(poll_until({a_.get(), b_.get()},
                         [&] { return a_->down.contains(peers_.near) && b_->down.contains(peers_.far); }));
  EXPECT_EQ(a_->done.size() + a_->failed.size(), 5u);
  EXPECT_EQ(a_->events_after_down, 0u);
  ASSERT_FALSE(a_->failed.empty());
  EXPECT_EQ(a_->failed.back().first, 4u);
  EXPECT_THAT(a_->failed.back().second.message(), HasSubstr("write 5 to peer"));
  EXPECT_THAT(a_->failed.back().second.message(), HasSubstr("EIO"));
  peers_ = connect(*a_, *b_, make_token(2));
  ASSERT_TRUE(post_number(9));
  ASSERT_TRUE(poll_until({a_.get(), b_.get()}, [&] { return !b_->immediates.empty() && heard().back() == 9u; }));
}

TEST_F(Fault, DropsAPeerAfterSoManyWrites) {
  start("drop_after=3");
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(post_number(i));
  ASSERT_TRUE(poll_until({a_.get(), b_.get()},
                         [&] { return a_->down.contains(peers_.near) && b_->down.contains(peers_.far); }));
  EXPECT_EQ(a_->done.size() + a_->failed.size(), 3u);
  EXPECT_THAT(a_->down.at(peers_.near).message(), HasSubstr("drop_after"));
}

TEST_F(Fault, SlowsARail) {
  start("slow=1024");
  for (std::uint32_t i = 0; i < 8; ++i) ASSERT_TRUE(post_number(i));
  int polls = 0;
  while (a_->done.size() < 8 && polls < 1000) {
    a_->poll();
    ++polls;
  }
  // The first write goes on credit of one poll, the last one waits for the 28 KiB before it.
  EXPECT_GE(polls, 28);
  EXPECT_LE(polls, 40);
}

TEST_F(Fault, HeldWritesKeepTheirRegion) {
  start("delay=100,reorder=100");
  for (std::uint32_t i = 0; i < 32; ++i) ASSERT_TRUE(post_number(i));
  EXPECT_EQ(a_->fabric->deregister(a_->region).error().code(), Code::invalid_usage);
  ASSERT_TRUE(poll_until({a_.get(), b_.get()}, [&] { return a_->done.size() == 32; }));
  EXPECT_TRUE(a_->fabric->deregister(a_->region));
}

TEST_F(Fault, FullQueueSaysAgain) {
  start("delay=100");
  std::uint32_t posted = 0;
  while (posted < 10'000 && *post_number(posted) == PostState::posted) ++posted;
  EXPECT_LE(posted, 2 * a_->fabric->describe().write_queue);
  ASSERT_TRUE(poll_until({a_.get(), b_.get()}, [&] { return a_->done.size() == posted; }));
}

}  // namespace
}  // namespace railhead::fabric::test
