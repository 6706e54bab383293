#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tools/ep-bench/compare/budget.hpp"

namespace railhead::bench {
namespace {

PairedSamples pairs(double product, double peer) {
  PairedSamples samples;
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(samples.add(product + 0.001 * i, peer).ok());
  return samples;
}

TEST(Budgets, KeysAreFoundAndDiffer) {
  std::set<std::string_view> keys;
  for (const Budget& budget : budgets()) {
    keys.insert(budget.key);
    EXPECT_EQ(find_budget(budget.key), &budget);
  }
  EXPECT_EQ(keys.size(), budgets().size());
  EXPECT_EQ(find_budget("node_rank_t64"), nullptr);
}

TEST(Budgets, TheLimitItselfIsMet) {
  const Budget& more = *find_budget("node_rank_t512");
  EXPECT_TRUE(meets(more, 2));
  EXPECT_FALSE(meets(more, 1.99));
  const Budget& less = *find_budget("death_ms");
  EXPECT_TRUE(meets(less, 10));
  EXPECT_FALSE(meets(less, 10.01));
}

TEST(Figures, SpeedIsTheLowerBoundOfPeerOverProduct) {
  const auto figure = speed_ratio(pairs(2, 6), "MPI", "ms");
  ASSERT_TRUE(figure) << figure.error().message();
  EXPECT_EQ(figure->value, figure->raw["lower"]);
  EXPECT_LE(figure->value, figure->raw["median"]);
  EXPECT_NEAR(figure->value, 3, 0.05);
  EXPECT_EQ(figure->raw["product"].size(), 30);
}

TEST(Figures, TimeIsTheUpperBoundOfProductOverPeer) {
  const auto figure = time_ratio(pairs(6, 2), "bare", "us");
  ASSERT_TRUE(figure) << figure.error().message();
  EXPECT_EQ(figure->value, figure->raw["upper"]);
  EXPECT_GE(figure->value, figure->raw["median"]);
  EXPECT_LE(figure->raw["lower"], figure->raw["median"]);
  EXPECT_NEAR(figure->value, 3, 0.05);
}

TEST(Figures, PlainOnesTakeTheUnfavourableBound) {
  std::vector<double> samples;
  for (int i = 1; i <= 31; ++i) samples.push_back(i);
  EXPECT_LT(plain_figure(samples, Better::higher, "M/s")->value, 16);
  EXPECT_GT(plain_figure(samples, Better::lower, "ms")->value, 16);
  EXPECT_FALSE(plain_figure({1, 2}, Better::lower, "ms"));
}

}  // namespace
}  // namespace railhead::bench
