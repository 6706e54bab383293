#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/reference/model.hpp"
#include "tests/unit/reference/cases.hpp"

namespace railhead::reference {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ReferenceDispatch, DefaultMapGivesTheFirstRanksOneMore) {
  EXPECT_THAT(default_rank_of_expert(7, 3), ElementsAre(0, 0, 0, 1, 1, 2, 2));
  EXPECT_THAT(default_rank_of_expert(2, 3), ElementsAre(0, 1));
}

TEST(ReferenceDispatch, RankLayoutIsOneRowPerTokenInSourceOrder) {
  // 2 ranks, experts 0 1 | 2 3.
  const Case test = numbered_case(2, 4, 2, Layout::rank, {{3, 1, 2, 3}, {0, 1, 2, 0}});
  const std::vector<Received> got = dispatch(test);

  EXPECT_THAT(unpack(NumberType::fp32, got[0].x), ElementsAre(0, 100, 101));
  EXPECT_THAT(got[0].source_rank, ElementsAre(0, 1, 1));
  EXPECT_THAT(got[0].token, ElementsAre(0, 0, 1));
  EXPECT_THAT(got[0].slot, ElementsAre(1, 0, 1));
  EXPECT_THAT(got[0].local_experts, ElementsAre(1, -1, 0, 1, 0, -1));
  EXPECT_THAT(got[0].local_weights, ElementsAre(1, 0, 1, 1, 1, 0));
  EXPECT_THAT(got[0].weight, ElementsAre(1, 2, 1));
  EXPECT_EQ(got[0].received, 3u);
  EXPECT_THAT(got[0].expert_counts, ElementsAre(2, 2));

  EXPECT_THAT(unpack(NumberType::fp32, got[1].x), ElementsAre(0, 1, 101));
  EXPECT_THAT(got[1].slot, ElementsAre(0, 0, 0));
  EXPECT_THAT(got[1].local_experts, ElementsAre(1, -1, 0, 1, 0, -1));
  EXPECT_THAT(got[1].offsets, ElementsAre(0, 2, 4));
}

TEST(ReferenceDispatch, ExpertLayoutIsExpertMajorAndPadded) {
  Case test = numbered_case(2, 4, 2, Layout::expert, {{3, 1, 2, 3}, {0, 1, 2, 0}});
  test.align = 4;
  test.inputs[0].weights = {.5f, .25f, .125f, .75f};
  const std::vector<Received> got = dispatch(test);

  EXPECT_EQ(got[0].rows, 8u);
  EXPECT_EQ(got[0].received, 4u);
  EXPECT_THAT(unpack(NumberType::fp32, got[0].x), ElementsAre(100, 101, 0, 0, 0, 100, 0, 0));
  EXPECT_THAT(got[0].source_rank, ElementsAre(1, 1, -1, -1, 0, 1, -1, -1));
  EXPECT_THAT(got[0].token, ElementsAre(0, 1, -1, -1, 0, 0, -1, -1));
  EXPECT_THAT(got[0].slot, ElementsAre(0, 1, -1, -1, 1, 1, -1, -1));
  EXPECT_THAT(got[0].expert, ElementsAre(0, 0, -1, -1, 1, 1, -1, -1));
  EXPECT_THAT(got[0].weight, ElementsAre(1, 1, 0, 0, .25f, 1, 0, 0));
  EXPECT_THAT(got[0].offsets, ElementsAre(0, 2, 4));
  EXPECT_THAT(got[0].padded_offsets, ElementsAre(0, 4, 8));
  EXPECT_THAT(got[0].local_experts, IsEmpty());

  EXPECT_THAT(got[1].source_rank, ElementsAre(0, 1, -1, -1, 0, 0, -1, -1));
  EXPECT_THAT(got[1].weight, ElementsAre(.125f, 1, 0, 0, .5f, .75f, 0, 0));
}

TEST(ReferenceDispatch, AnExpertWithoutRowsTakesNoPadding) {
  Case test = numbered_case(1, 3, 1, Layout::expert, {{2}});
  test.align = 2;
  const std::vector<Received> got = dispatch(test);
  EXPECT_THAT(got[0].padded_offsets, ElementsAre(0, 0, 0, 2));
  EXPECT_THAT(got[0].expert, ElementsAre(2, -1));
}

// Field report B03: unused slots send nothing and are in no count, others do not notice.
TEST(ReferenceDispatch, UnusedSlotsSendNothing) {
  const Case test = numbered_case(2, 4, 2, Layout::rank, {{-1, -1, 3, -1}, {-1, 0}});
  const std::vector<Received> got = dispatch(test);
  EXPECT_THAT(got[0].source_rank, ElementsAre(1));
  EXPECT_THAT(got[0].slot, ElementsAre(1));
  EXPECT_THAT(got[0].expert_counts, ElementsAre(1, 0));
  EXPECT_THAT(unpack(NumberType::fp32, got[1].x), ElementsAre(1));
  EXPECT_THAT(got[1].expert_counts, ElementsAre(0, 1));
}

// Field report B05: a repeated id is one row with the weights added.
TEST(ReferenceDispatch, RepeatedIdsAreOneRowWithTheWeightsAdded) {
  for (const Layout layout : {Layout::rank, Layout::expert}) {
    Case test = numbered_case(1, 10, 4, layout, {{9, 5, 9, 5}});
    test.inputs[0].weights = {.3f, .1f, .4f, .2f};
    const std::vector<Received> got = dispatch(test);
    const std::vector<float>& weights = layout == Layout::rank ? got[0].local_weights : got[0].weight;
    EXPECT_EQ(weights[0], .1f + .2f);
    EXPECT_EQ(weights[1], .3f + .4f);
    if (layout == Layout::rank) {
      EXPECT_THAT(got[0].local_experts, ElementsAre(5, 9, -1, -1));
      EXPECT_THAT(got[0].slot, ElementsAre(0));
    } else {
      EXPECT_THAT(got[0].expert, ElementsAre(5, 9));
      EXPECT_THAT(got[0].slot, ElementsAre(1, 0));
    }
  }
}

TEST(ReferenceDispatch, AnyExpertMapAndNoTokens) {
  Case test = numbered_case(3, 4, 1, Layout::rank, {{0, 3}, {}, {1}});
  test.rank_of_expert = {2, 0, 2, 2};  // rank 1 has no expert
  test.side_bytes = 2;
  test.inputs[0].side = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  test.inputs[2].side = {std::byte{5}, std::byte{6}};
  const std::vector<Received> got = dispatch(test);
  EXPECT_THAT(got[0].side, ElementsAre(std::byte{5}, std::byte{6}));
  EXPECT_EQ(got[1].rows, 0u);
  EXPECT_THAT(got[1].offsets, ElementsAre(0));
  EXPECT_THAT(got[2].local_experts, ElementsAre(0, 2));
  EXPECT_THAT(got[2].side, ElementsAre(std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}));
}

}  // namespace
}  // namespace railhead::reference
