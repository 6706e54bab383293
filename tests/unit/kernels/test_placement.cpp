#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/plan/placement.hpp"
#include "tests/unit/kernels/routings.hpp"

namespace railhead::kernels {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ExpertMap, DefaultIsContiguousAndFirstRanksHoldOneMore) {
  const ExpertMap map = ExpertMap::create(7, {0, 0, 0}).value();
  EXPECT_EQ(map.experts(), 7u);
  EXPECT_EQ(map.ranks(), 3u);
  EXPECT_EQ(map.domains(), 1u);
  EXPECT_THAT(map.experts_on(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(map.experts_on(1), ElementsAre(3, 4));
  EXPECT_THAT(map.experts_on(2), ElementsAre(5, 6));
  EXPECT_EQ(map.home(4).on_rank, 1u);
}

TEST(ExpertMap, InterleavedDomainsNumberExpertsByLocalRankThenId) {
  const ExpertMap map = ExpertMap::create(6, {1, 0, 1}).value();
  EXPECT_THAT(map.ranks_in(0), ElementsAre(1));
  EXPECT_THAT(map.ranks_in(1), ElementsAre(0, 2));
  EXPECT_THAT(map.experts_in(0), ElementsAre(2, 3));
  EXPECT_THAT(map.experts_in(1), ElementsAre(0, 1, 4, 5));
  EXPECT_EQ(map.local_rank_of(2), 1);
  EXPECT_EQ(map.first_dense(2), 2u);
  EXPECT_EQ(map.home(5).dense, 3);
  EXPECT_EQ(map.home(5).rank, 2u);
  EXPECT_EQ(map.home(5).local_rank, 1);
}

TEST(ExpertMap, ExplicitMapMayScatterExperts) {
  const std::vector<uint32_t> rank_of = {1, 0, 1, 0, 1};
  const ExpertMap map = ExpertMap::create(5, {0, 0}, rank_of).value();
  EXPECT_THAT(map.experts_in(0), ElementsAre(1, 3, 0, 2, 4));
  EXPECT_EQ(map.home(2).on_rank, 1u);
  EXPECT_EQ(map.home(2).dense, 3);
}

TEST(ExpertMap, RanksAndDomainsMayHoldNoExpert) {
  const ExpertMap map = ExpertMap::create(1, {0, 1, 2}).value();
  EXPECT_THAT(map.experts_on(0), ElementsAre(0));
  EXPECT_THAT(map.experts_on(1), IsEmpty());
  EXPECT_THAT(map.experts_in(1), IsEmpty());
  EXPECT_THAT(map.experts_in(2), IsEmpty());
  EXPECT_THAT(map.ranks_in(2), ElementsAre(2));
  EXPECT_EQ(map.first_dense(2), 0u);
}

TEST(ExpertMap, RefusesWhatIsNoGroup) {
  const std::vector<uint32_t> short_map = {0};
  const std::vector<uint32_t> bad_rank = {0, 2};
  EXPECT_THAT(ExpertMap::create(2, {}).error().message(), HasSubstr("0 ranks"));
  EXPECT_THAT(ExpertMap::create(0, {0}).error().message(), HasSubstr("0 experts"));
  EXPECT_THAT(ExpertMap::create(2, {0, 2}).error().message(), HasSubstr("domain 1 of 3 has no rank"));
  EXPECT_THAT(ExpertMap::create(2, {0}, short_map).error().message(), HasSubstr("1 entries"));
  EXPECT_THAT(ExpertMap::create(2, {0, 0}, bad_rank).error().message(), HasSubstr("expert 1 on rank 2"));
  EXPECT_THAT(ExpertMap::create(4000000000u, {0}).error().message(), HasSubstr("at most 65536"));
  std::vector<uint32_t> crowded(70000, 0);
  EXPECT_THAT(ExpertMap::create(70000, {0, 1}, crowded).error().message(), HasSubstr("domain 0 holds 70000 experts"));
}

TEST(ExpertMap, RandomMapsAreConsistent) {
  SCOPED_TRACE(test::seed_text());
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < 200; ++round) {
    const ExpertMap map = test::random_map(random);
    uint32_t place = 0;
    uint32_t ranks = 0;
    for (uint32_t domain = 0; domain < map.domains(); ++domain) {
      const auto d = static_cast<uint16_t>(domain);
      uint16_t dense = 0;
      uint16_t local_rank = 0;
      for (const uint32_t rank : map.ranks_in(d)) {
        EXPECT_EQ(map.domain_of(rank), d);
        EXPECT_EQ(map.local_rank_of(rank), local_rank);
        EXPECT_EQ(map.first_dense(rank), dense);
        uint32_t on_rank = 0;
        int64_t previous = -1;
        for (const uint32_t expert : map.experts_on(rank)) {
          const ExpertHome& home = map.home(expert);
          EXPECT_EQ(&home, &map.home_at(place));
          EXPECT_EQ(map.place_of(expert), place);
          EXPECT_EQ(home.rank, rank);
          EXPECT_EQ(home.on_rank, on_rank++);
          EXPECT_EQ(home.domain, d);
          EXPECT_EQ(home.local_rank, local_rank);
          EXPECT_EQ(home.dense, dense);
          EXPECT_EQ(map.experts_in(d)[dense++], expert);
          EXPECT_LT(previous, expert);
          previous = expert;
          ++place;
        }
        ++local_rank;
        ++ranks;
      }
      EXPECT_EQ(map.experts_in(d).size(), dense);
    }
    EXPECT_EQ(place, map.experts());
    EXPECT_EQ(ranks, map.ranks());
  }
}

}  // namespace
}  // namespace railhead::kernels
