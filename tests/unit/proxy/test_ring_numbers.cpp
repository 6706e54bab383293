#include <gtest/gtest.h>

#include <set>

#include "daemon/proxy/ring_numbers.hpp"

namespace railhead::daemon::rail {
namespace {

TEST(RingNumbers, GivesEachNumberOnceAndNeverZero) {
  RingNumbers numbers(8);
  std::set<std::uint16_t> seen;
  for (int i = 0; i < 7; ++i) seen.insert(numbers.take()->number);
  EXPECT_EQ(seen, (std::set<std::uint16_t>{1, 2, 3, 4, 5, 6, 7}));
}

TEST(RingNumbers, SaysTheLimitWhenNoneIsLeft) {
  RingNumbers numbers(2);
  ASSERT_TRUE(numbers.take());
  const auto none = numbers.take();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::limit_exceeded);
  EXPECT_NE(none.error().message().find("all 1 ring numbers"), std::string::npos);
}

TEST(RingNumbers, ReusesANumberLastAndUnderTheNextGeneration) {
  RingNumbers numbers(4);
  const RingName first = *numbers.take();
  numbers.give_back(first);
  EXPECT_NE(numbers.take()->number, first.number);
  EXPECT_NE(numbers.take()->number, first.number);
  const RingName again = *numbers.take();
  EXPECT_EQ(again.number, first.number);
  EXPECT_EQ(again.generation, first.generation + 1);
}

TEST(RingNumbers, GenerationsWrapAtSixBits) {
  RingNumbers numbers(2);
  for (int use = 0; use < 64; ++use) {
    const RingName name = *numbers.take();
    EXPECT_EQ(name.generation, use);
    numbers.give_back(name);
  }
  EXPECT_EQ(numbers.take()->generation, 0);
}

}  // namespace
}  // namespace railhead::daemon::rail
