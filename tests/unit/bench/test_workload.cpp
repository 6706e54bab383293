#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/bench/temp_file.hpp"
#include "tools/ep-bench/workload.hpp"

namespace railhead::bench {
namespace {

using testing::ElementsAre;

TEST(PlaceRanks, BlocksFollowTheNodes) {
  const Placement placed = place_ranks({3, 1}, false);
  EXPECT_THAT(placed.node_of_rank, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(placed.domain_of_rank, ElementsAre(0, 0, 0, 1));
}

TEST(PlaceRanks, InterleavedDealsToNodesWithRoom) {
  EXPECT_THAT(place_ranks({1, 3, 2}, true).node_of_rank, ElementsAre(0, 1, 2, 1, 2, 1));
}

TEST(PlaceRanks, DomainsAreNumberedByTheirLowestRank) {
  const Placement placed = place_ranks({0, 2, 1}, false);
  EXPECT_THAT(placed.node_of_rank, ElementsAre(1, 1, 2));
  EXPECT_THAT(placed.domain_of_rank, ElementsAre(0, 0, 1));
}

TEST(WorkloadFile, ComesBackAsItWas) {
  Workload work;
  work.domain_of_rank = {0, 1, 0};
  work.tokens = {7, 0, 9};
  work.hidden = 130;
  work.layout = RH_LAYOUT_EXPERT;
  work.align = 8;
  work.type = RH_FP16;
  work.wire = RH_FP32;
  work.ring_slots = 1;
  work.routing = "zipf:1.2";
  work.seed = 77;
  work.in_place = false;
  work.timeout_s = 5;
  const TempFile file("");
  ASSERT_TRUE(save(work, file.path()).ok());
  const auto back = load_workload(file.path());
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->domain_of_rank, work.domain_of_rank);
  EXPECT_EQ(back->tokens, work.tokens);
  EXPECT_EQ(back->hidden, work.hidden);
  EXPECT_EQ(back->layout, work.layout);
  EXPECT_EQ(back->align, work.align);
  EXPECT_EQ(back->type, work.type);
  EXPECT_EQ(back->wire, work.wire);
  EXPECT_EQ(back->ring_slots, work.ring_slots);
  EXPECT_EQ(back->routing, work.routing);
  EXPECT_EQ(back->seed, work.seed);
  EXPECT_EQ(back->in_place, work.in_place);
  EXPECT_EQ(back->two_in_flight, work.two_in_flight);
  EXPECT_EQ(back->timeout_s, work.timeout_s);
  EXPECT_EQ(back->domains(), 2);
  EXPECT_EQ(back->row_bytes(), 260);
}

TEST(WorkloadFile, NamesTheFileThatIsNoWorkload) {
  const TempFile file("{\"tokens\": 3");
  const auto back = load_workload(file.path());
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code(), Code::invalid_argument);
  EXPECT_THAT(back.error().message(), testing::HasSubstr(file.path()));
  EXPECT_EQ(load_workload("/nowhere/at/all").error().code(), Code::system);
}

}  // namespace
}  // namespace railhead::bench
