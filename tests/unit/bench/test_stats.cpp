#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "tools/ep-bench/stats.hpp"

namespace railhead::bench {
namespace {

using testing::HasSubstr;

std::vector<double> one_to(int count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0);
  std::shuffle(values.begin(), values.end(), std::mt19937(5));
  return values;
}

TEST(Stats, MedianAndPercentiles) {
  EXPECT_EQ(median(one_to(5)), 3);
  EXPECT_EQ(median(one_to(4)), 2.5);
  EXPECT_EQ(percentile(one_to(101), 99), 100);
  EXPECT_EQ(percentile(one_to(5), 0), 1);
  EXPECT_EQ(percentile(one_to(5), 100), 5);
  EXPECT_DOUBLE_EQ(percentile(one_to(2), 25), 1.25);
  EXPECT_TRUE(std::isnan(median({})));
}

// Orders from printed tables of the sign test, one-sided 5 %.
TEST(Stats, BoundsAreTheOrderStatisticsOfTheSignTest) {
  EXPECT_EQ(lower_median_bound(one_to(5)), 1);
  EXPECT_EQ(lower_median_bound(one_to(8)), 2);
  EXPECT_EQ(lower_median_bound(one_to(10)), 2);
  EXPECT_EQ(lower_median_bound(one_to(20)), 6);
  EXPECT_EQ(lower_median_bound(one_to(30)), 11);
  EXPECT_EQ(upper_median_bound(one_to(30)), 20);
  EXPECT_EQ(lower_median_bound(one_to(30), 0.975), 10);
}

TEST(Stats, TooFewSamplesOrNonsenseConfidenceIsAnError) {
  const auto few = lower_median_bound(one_to(4));
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().code(), Code::invalid_argument);
  EXPECT_THAT(few.error().message(), HasSubstr("4 samples are too few"));
  EXPECT_FALSE(upper_median_bound(one_to(30), 1.0));
  EXPECT_FALSE(lower_median_bound(one_to(30), std::numeric_limits<double>::quiet_NaN()));
}

TEST(Stats, TheBoundHoldsAsOftenAsItSays) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> skewed(0, 1);  // its median is 1
  int held = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(30);
    for (double& sample : samples) sample = skewed(random);
    held += *lower_median_bound(samples) <= 1;
  }
  EXPECT_NEAR(held / double{kTrials}, 0.9506, 0.015);  // 1 - P(Binomial(30, 1/2) <= 10)
}

TEST(Stats, RatiosArePeerOverProduct) {
  PairedSamples samples;
  for (int i = 1; i <= 30; ++i) ASSERT_TRUE(samples.add(2, 2.0 * i).ok());
  const auto summary = samples.summary();
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->pairs, 30u);
  EXPECT_EQ(summary->lower, 11);
  EXPECT_EQ(summary->median, 15.5);
  EXPECT_EQ(summary->upper, 20);
  EXPECT_EQ(summary->smallest, 1);
  EXPECT_EQ(summary->largest, 30);
  EXPECT_EQ(summary->product_median, 2);
  EXPECT_EQ(summary->peer_median, 31);
}

TEST(Stats, UnusableSamplesAreRefused) {
  PairedSamples samples;
  EXPECT_FALSE(samples.add(0, 1).ok());
  EXPECT_FALSE(samples.add(1, -1).ok());
  EXPECT_FALSE(samples.add(std::numeric_limits<double>::infinity(), 1).ok());
  EXPECT_EQ(samples.size(), 0u);
  EXPECT_FALSE(samples.summary());
}

TEST(Stats, InterleaveTakesTurnsAndNamesTheSideThatFails) {
  std::string order;
  const auto product = [&]() -> Result<double> { return order += 'A', 1.0; };
  const auto peer = [&]() -> Result<double> { return order += 'B', 3.0; };
  const auto samples = interleave(3, product, peer);
  ASSERT_TRUE(samples);
  EXPECT_EQ(order, "ABABAB");
  EXPECT_THAT(samples->ratios(), testing::ElementsAre(3, 3, 3));

  const auto failing = [&]() -> Result<double> {
    if (order.size() > 8) return fail(Code::timeout, "no answer");
    return order += 'B', 3.0;
  };
  const auto failed = interleave(3, product, failing);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::timeout);
  EXPECT_EQ(failed.error().message(), "pair 1, peer: no answer");
}

}  // namespace
}  // namespace railhead::bench
