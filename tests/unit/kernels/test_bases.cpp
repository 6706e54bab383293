#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kernels/plan/bases.hpp"
#include "kernels/plan/plan.hpp"
#include "tests/unit/kernels/routings.hpp"

namespace railhead::kernels {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();

std::vector<const uint32_t*> pointers(const std::vector<std::vector<uint32_t>>& slices) {
  std::vector<const uint32_t*> result;
  for (const auto& slice : slices) result.push_back(slice.data());
  return result;
}

TEST(RankBases, SumsOverSources) {
  const ExpertMap map = ExpertMap::create(2, {0, 0}).value();
  const std::vector<std::vector<uint32_t>> slices = {{9, 9, 3, 1}, {9, 9, 0, 4}};  // two experts, two ranks
  RankBases bases;
  ASSERT_TRUE(bases.compute(map, 0, pointers(slices)).ok());
  EXPECT_THAT(bases.of_source(0), ElementsAre(0, 0));
  EXPECT_THAT(bases.of_source(1), ElementsAre(3, 1));
  EXPECT_EQ(bases.limit(0, 1), 1u);
  EXPECT_EQ(bases.limit(1, 1), 5u);
  EXPECT_EQ(bases.rows(0), 3u);
  EXPECT_EQ(bases.rows(1), 5u);
}

TEST(RankBases, FullRangeIsAllowedAndOneMoreIsNamed) {
  const ExpertMap map = ExpertMap::create(2, {0, 0}).value();
  std::vector<std::vector<uint32_t>> slices = {{0, 0, 0, kMost - 1}, {0, 0, 0, 1}};
  RankBases bases;
  ASSERT_TRUE(bases.compute(map, 0, pointers(slices)).ok());
  EXPECT_EQ(bases.rows(1), kMost);
  slices[1][3] = 2;
  const Status status = bases.compute(map, 0, pointers(slices));
  EXPECT_EQ(status.code(), Code::limit_exceeded);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 would receive 2147483648"));
}

TEST(ExpertBases, PadsEachExpertAndStartsAgainOnEachRank) {
  const ExpertMap map = ExpertMap::create(5, {0, 1, 0}).value();  // domain 0: experts 0, 1 on rank 0, 4 on rank 2
  const std::vector<std::vector<uint32_t>> slices = {{1, 0, 2}, {2, 4, 1}, {0, 1, 6}};
  ExpertBases bases;
  ASSERT_TRUE(bases.compute(map, 0, pointers(slices), 4).ok());
  EXPECT_THAT(bases.of_source(0), ElementsAre(0, 4, 0));
  EXPECT_THAT(bases.of_source(1), ElementsAre(1, 4, 2));
  EXPECT_THAT(bases.of_source(2), ElementsAre(3, 8, 3));
  EXPECT_EQ(bases.limit(1, 1), 8u);
  EXPECT_EQ(bases.end(1), 9u);
  EXPECT_EQ(bases.count(1), 5u);
  EXPECT_EQ(bases.rows(0), 8u);
  EXPECT_EQ(bases.padded_rows(0), 12u);
  EXPECT_EQ(bases.rows(1), 9u);
  EXPECT_EQ(bases.padded_rows(1), 12u);
}

TEST(ExpertBases, PaddingCountsTowardsTheLimit) {
  const ExpertMap map = ExpertMap::create(2, {0}).value();
  std::vector<std::vector<uint32_t>> slices = {{kMost - 8, 1}};
  ExpertBases bases;
  EXPECT_TRUE(bases.compute(map, 0, pointers(slices), 1).ok());
  EXPECT_EQ(bases.first(1), kMost - 8);
  const Status status = bases.compute(map, 0, pointers(slices), 16);
  EXPECT_EQ(status.code(), Code::limit_exceeded);
  EXPECT_EQ(bases.compute(map, 0, pointers(slices), 0).code(), Code::invalid_argument);
}

TEST(ExpertBases, RankWithoutExpertsReceivesNothing) {
  const ExpertMap map = ExpertMap::create(1, {0, 0}).value();
  const std::vector<std::vector<uint32_t>> slices = {{5}, {1}};
  ExpertBases bases;
  ASSERT_TRUE(bases.compute(map, 0, pointers(slices), 8).ok());
  EXPECT_EQ(bases.padded_rows(0), 8u);
  EXPECT_EQ(bases.padded_rows(1), 0u);
}

// All rows of all sources, placed with ordinals and bases, must tile each receiver in the documented order.
class WholeGroup {
 public:
  explicit WholeGroup(std::mt19937_64& random)
      : map_(test::random_map(random)), plans_(map_.ranks()), align_(test::pick(random, 1, 9)) {
    for (Plan& plan : plans_) {
      test::RoutingData data;
      test::random_routing(random, map_.experts(), test::pick(random, 0, 40), data);
      EXPECT_TRUE(plan.build(data.routing, map_, 2).ok());
    }
  }

  void expect_tiled() {
    for (uint32_t d = 0; d < map_.domains(); ++d) {
      const auto domain = static_cast<uint16_t>(d);
      std::vector<const uint32_t*> slices;
      for (const Plan& plan : plans_) slices.push_back(plan.slice(domain).data());
      ASSERT_TRUE(ranks_.compute(map_, domain, slices).ok());
      ASSERT_TRUE(experts_.compute(map_, domain, slices, align_).ok());
      for (const uint32_t rank : map_.ranks_in(domain)) {
        expect_rank_layout(rank);
        expect_expert_layout(rank);
      }
    }
  }

 private:
  void expect_rank_layout(uint32_t receiver) const {
    const uint16_t local = map_.local_rank_of(receiver);
    uint32_t next = 0;
    for (uint32_t source = 0; source < plans_.size(); ++source) {
      for (uint32_t token = 0; token < plans_[source].tokens(); ++token) {
        bool placed = false;
        for (const Placement& row : plans_[source].placements(token)) {
          if (row.domain != map_.domain_of(receiver) || row.local_rank != local) continue;
          EXPECT_EQ(ranks_.base(source, local) + row.rank_ordinal, next);
          EXPECT_LT(next, ranks_.limit(source, local));
          placed = true;
        }
        next += placed ? 1 : 0;
      }
    }
    EXPECT_EQ(ranks_.rows(local), next);
  }

  void expect_expert_layout(uint32_t receiver) const {
    const uint16_t local = map_.local_rank_of(receiver);
    uint32_t next = 0;
    uint32_t rows = 0;
    for (const uint32_t expert : map_.experts_on(receiver)) {
      const uint16_t dense = map_.home(expert).dense;
      EXPECT_EQ(experts_.first(dense), next);
      for (uint32_t source = 0; source < plans_.size(); ++source) {
        for (uint32_t token = 0; token < plans_[source].tokens(); ++token) {
          for (const Placement& row : plans_[source].placements(token)) {
            if (row.domain != map_.domain_of(receiver) || row.expert != dense) continue;
            EXPECT_EQ(experts_.base(source, dense) + row.expert_ordinal, next);
            EXPECT_LT(next, experts_.limit(source, dense));
            ++next;
            ++rows;
          }
        }
      }
      EXPECT_EQ(experts_.end(dense), next);
      while (next % align_ != 0) ++next;
    }
    EXPECT_EQ(experts_.rows(local), rows);
    EXPECT_EQ(experts_.padded_rows(local), next);
  }

  ExpertMap map_;
  std::vector<Plan> plans_;
  uint32_t align_;
  RankBases ranks_;
  ExpertBases experts_;
};

TEST(Bases, RandomGroupsTileEveryReceiver) {
  SCOPED_TRACE(test::seed_text());
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    WholeGroup(random).expect_tiled();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace railhead::kernels
