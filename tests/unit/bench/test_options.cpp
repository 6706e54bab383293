#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/ep-bench/run/options.hpp"

namespace railhead::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const RunOptions& options) {
  const auto plan = make_plan(options);
  if (plan) return "no error";
  EXPECT_EQ(plan.error().code(), Code::invalid_argument);
  return plan.error().message();
}

TEST(MakePlan, SpreadsOneNumberOverAll) {
  RunOptions options;
  options.nodes = 2;
  options.ranks = {2};
  options.tokens = {9};
  const auto plan = make_plan(options);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_THAT(plan->node_of_rank, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(plan->work.tokens, ElementsAre(9, 9, 9, 9));
  EXPECT_EQ(plan->work.top_k, 8);
  EXPECT_EQ(plan->work.experts, 256);
}

TEST(MakePlan, TakesListsPerNodeAndPerRank) {
  RunOptions options;
  options.nodes = 2;
  options.ranks = {1, 2};
  options.order = "interleave";
  options.tokens = {5, 0, 7};
  options.layout = "expert";
  options.align = 16;
  options.type = "fp32";
  options.wire = "fp32";
  options.net = "loopback";
  const auto plan = make_plan(options);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_THAT(plan->node_of_rank, ElementsAre(0, 1, 1));
  EXPECT_THAT(plan->work.tokens, ElementsAre(5, 0, 7));
  EXPECT_EQ(plan->work.layout, RH_LAYOUT_EXPERT);
  EXPECT_EQ(plan->work.type, RH_FP32);
  EXPECT_EQ(plan->work.wire, RH_FP32);
  EXPECT_EQ(plan->net, NetKind::loopback);
}

TEST(MakePlan, NamesListsOfTheWrongLength) {
  RunOptions options;
  options.nodes = 3;
  options.ranks = {1, 2};
  EXPECT_THAT(error_of(options), HasSubstr("--ranks has 2 numbers: give one for all, or one for each of the 3 nodes"));
  options.ranks = {1};
  options.tokens = {1, 2};
  EXPECT_THAT(error_of(options), HasSubstr("--tokens has 2 numbers"));
}

TEST(MakePlan, RefusesWhatDoesNotFit) {
  RunOptions options;
  options.ranks = {0};
  EXPECT_THAT(error_of(options), HasSubstr("--ranks make 0 in all"));
  options = {};
  options.align = 4;
  EXPECT_THAT(error_of(options), HasSubstr("--align"));
  options = {};
  options.two_in_flight = true;
  options.in_place = false;
  EXPECT_THAT(error_of(options), HasSubstr("--async"));
  options = {};
  options.routing = "zipf:steep";
  EXPECT_THAT(error_of(options), HasSubstr("zipf"));
  options = {};
  options.experts = 4;
  EXPECT_THAT(error_of(options), HasSubstr("top-k"));
}

TEST(MakePlan, JoiningNeedsRankAndIdFile) {
  RunOptions options;
  options.join = "/run/epd/epd.sock";
  EXPECT_THAT(error_of(options), HasSubstr("--rank"));
  options.rank = 4;
  options.id_file = "/tmp/id";
  EXPECT_THAT(error_of(options), HasSubstr("--rank is 4, the ranks are 0 to 3"));
  options.rank = 3;
  EXPECT_TRUE(make_plan(options));
  options.fault = "seed=1";
  EXPECT_THAT(error_of(options), HasSubstr("--fault"));
  options = {};
  options.rank = 0;
  EXPECT_THAT(error_of(options), HasSubstr("belong to --join"));
}

}  // namespace
}  // namespace railhead::bench
