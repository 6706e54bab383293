#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tools/ep-bench/rank/control.hpp"

namespace railhead::bench {
namespace {

ipc::Deadline soon() {
  return ipc::Deadline::after(std::chrono::seconds(20));
}

TEST(Control, NobodyPassesABarrierBeforeTheLastCame) {
  constexpr std::uint32_t kRanks = 3;
  constexpr std::uint32_t kRounds = 200;
  auto control = Control::make(kRanks);
  ASSERT_TRUE(control);
  std::atomic<std::uint32_t> arrived = 0;
  std::atomic<bool> early = false;
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&] {
      for (std::uint32_t round = 1; round <= kRounds; ++round) {
        ++arrived;
        if (!control->barrier(soon()).ok() || arrived < round * kRanks) early = true;
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_FALSE(early);
}

TEST(Control, ABarrierEndsWithItsDeadline) {
  auto control = Control::make(2);
  ASSERT_TRUE(control);
  EXPECT_EQ(control->barrier(ipc::Deadline::after(std::chrono::milliseconds(10))).code(), Code::timeout);
}

TEST(Control, GivingUpEndsTheBarrier) {
  auto control = Control::make(2);
  ASSERT_TRUE(control);
  std::thread waiter([&] { EXPECT_EQ(control->barrier(soon()).code(), Code::aborted); });
  control->give_up();
  waiter.join();
}

TEST(Control, SamplesDoNotOverlap) {
  auto control = Control::make(2);
  ASSERT_TRUE(control);
  control->sample(0, kRoundsPerCommand - 1).rows = 1;
  control->sample(1, 0).rows = 2;
  control->sample(1, kRoundsPerCommand - 1).rows = 3;
  EXPECT_EQ(control->sample(0, kRoundsPerCommand - 1).rows, 1);
  EXPECT_EQ(control->sample(1, 0).rows, 2);
}

TEST(Answer, CutsASentenceThatIsTooLong) {
  Answer answer{};
  answer.say(std::string(5000, 'x'));
  EXPECT_EQ(std::string(answer.text).size(), sizeof(answer.text) - 1);
}

}  // namespace
}  // namespace railhead::bench
