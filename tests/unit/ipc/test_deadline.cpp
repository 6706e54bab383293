#include <gtest/gtest.h>

#include "ipc/deadline.hpp"

namespace railhead::ipc {
namespace {

using namespace std::chrono_literals;

TEST(Deadline, PassesAfterItsDelay) {
  EXPECT_TRUE(Deadline::after(0ms).expired());
  EXPECT_TRUE(Deadline::after(-5s).expired());
  EXPECT_FALSE(Deadline::after(1h).expired());
}

TEST(Deadline, NeverDoesNotPass) {
  EXPECT_TRUE(Deadline::never().is_never());
  EXPECT_FALSE(Deadline::never().expired());
  EXPECT_EQ(Deadline::never().remaining(250ms), 250ms);
}

TEST(Deadline, HugeDelaysSaturate) {
  EXPECT_TRUE(Deadline::after(Deadline::Clock::duration::max()).is_never());
}

TEST(Deadline, RemainingIsCutAndNeverNegative) {
  EXPECT_EQ(Deadline::after(1h).remaining(100ms), 100ms);
  EXPECT_EQ(Deadline::after(-1s).remaining(100ms), 0ms);
  EXPECT_EQ(Deadline::after(100us).remaining(100ms), 1ms);  // rounded up: 0 would spin
}

TEST(Deadline, OrdersByTime) {
  EXPECT_LT(Deadline::after(1s), Deadline::never());
}

}  // namespace
}  // namespace railhead::ipc
