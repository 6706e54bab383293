#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/ep-bench/run/summary.hpp"

namespace railhead::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

RoundSample sample(std::uint64_t dispatch_us, std::uint64_t combine_us, std::int32_t last) {
  RoundSample s{};
  s.dispatch_ns = dispatch_us * 1000;
  s.combine_ns = combine_us * 1000;
  s.total_ns = s.dispatch_ns + s.combine_ns;
  s.dispatch_wait_ns = 100'000;
  s.dispatch_transfer_ns = 1'900'000;
  s.rows = 10;
  s.received_bytes = 2'000'000;
  s.rail_bytes = 500'000;
  s.last_rank_dispatch = last;
  s.last_rank_combine = 1;
  return s;
}

TEST(Summary, TakesTheSlowestRankOfEachRound) {
  Summary summary(2);
  summary.add({sample(1000, 4000, 0), sample(3000, 1000, 0)});
  summary.add({sample(5000, 1000, 1), sample(1000, 1000, 1)});
  EXPECT_THAT(summary.dispatch_ms(), ElementsAre(3, 5));
  EXPECT_THAT(summary.combine_ms(), ElementsAre(4, 1));
  EXPECT_THAT(summary.total_ms(), ElementsAre(5, 6));
  EXPECT_EQ(Summary::times(summary.total_ms()).median, 5.5);
}

TEST(Summary, MeansAreOverRanksAndRounds) {
  Summary summary(2);
  summary.add({sample(1000, 1000, 0), sample(3000, 1000, 0)});
  EXPECT_EQ(summary.rows(), 10);
  EXPECT_EQ(summary.received_mb(), 2);
  EXPECT_EQ(summary.rail_mb(), 0.5);
  EXPECT_DOUBLE_EQ(summary.dispatch_wait_ms(), 0.1);
  EXPECT_DOUBLE_EQ(summary.dispatch_transfer_ms(), 1.9);
}

TEST(Summary, CountsWhoWasLastOncePerRound) {
  Summary summary(2);
  summary.add({sample(1, 1, 0), sample(1, 1, 0)});
  summary.add({sample(1, 1, 1), sample(1, 1, 1)});
  summary.add({sample(1, 1, -1), sample(1, 1, -1)});
  EXPECT_THAT(summary.last_dispatch(), ElementsAre(1, 1));
  EXPECT_THAT(summary.last_combine(), ElementsAre(0, 3));
}

TEST(SummaryTable, SaysWhatWasMeasuredAndWhetherItWasVerified) {
  Workload work;
  work.domain_of_rank = {0, 1};
  work.tokens = {3, 4};
  Summary summary(2);
  summary.add({sample(1000, 2000, 0), sample(1000, 2000, 0)});
  const std::string text = table(summary, work, "loopback", true);
  EXPECT_THAT(text, HasSubstr("2 ranks on 2 nodes (loopback), 3,4 tokens each"));
  EXPECT_THAT(text, HasSubstr("verified"));
  EXPECT_THAT(table(summary, work, "loopback", false), HasSubstr("not verified"));
  work.type = RH_U8;
  EXPECT_THAT(table(summary, work, "loopback", false), Not(HasSubstr("combine")));
}

TEST(SummaryJson, HoldsTheSamples) {
  Workload work;
  Summary summary(4);
  summary.add({sample(1000, 2000, 0)});
  const auto json = to_json(summary, work, "loopback", true);
  EXPECT_EQ(json["total_ms"]["median"], 3);
  EXPECT_EQ(json["dispatch_ms"]["samples"].size(), 1);
  EXPECT_EQ(json["verified"], true);
  EXPECT_EQ(json["workload"]["hidden"], 7168);
}

}  // namespace
}  // namespace railhead::bench
