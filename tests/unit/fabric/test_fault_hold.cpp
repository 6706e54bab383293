#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/fabric/fault_hold.hpp"

namespace railhead::fabric {
namespace {

// Everything that 1000 numbered items, one added per poll, come out as.
std::vector<int> run(std::uint64_t delay, std::uint64_t reorder, std::uint64_t seed) {
  FaultHold<int> hold(delay, reorder);
  std::mt19937_64 random(seed);
  std::vector<int> out;
  for (std::uint64_t now = 0; out.size() < 1000; ++now) {
    if (now < 1000) hold.add(static_cast<int>(now), now, random);
    while (const auto index = hold.pick(now, random)) out.push_back(hold.take(*index));
    if (now > 5000) break;
  }
  return out;
}

TEST(FaultHold, WithoutReorderingKeepsOrder) {
  const auto out = run(16, 0, 1);
  ASSERT_EQ(out.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(out.begin(), out.end()));
}

TEST(FaultHold, ReordersWithinItsWindowAndLosesNothing) {
  constexpr int kWindow = 8;
  const auto out = run(16, kWindow, 1);
  ASSERT_EQ(out.size(), 1000u);
  EXPECT_FALSE(std::is_sorted(out.begin(), out.end()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto overtakers =
        std::count_if(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(i), [&](int v) { return v > out[i]; });
    EXPECT_LE(overtakers, kWindow) << "item " << out[i];
  }
}

TEST(FaultHold, SameSeedSameOrder) {
  EXPECT_EQ(run(16, 8, 3), run(16, 8, 3));
  EXPECT_NE(run(16, 8, 3), run(16, 8, 4));
}

TEST(FaultHold, TakesWhatMatchesInOrder) {
  FaultHold<int> hold(0, 0);
  std::mt19937_64 random(1);
  for (int i = 0; i < 6; ++i) hold.add(i, 0, random);
  EXPECT_EQ(hold.take_all([](int value) { return value % 2 == 1; }), (std::vector<int>{1, 3, 5}));
  EXPECT_EQ(hold.size(), 3u);
}

}  // namespace
}  // namespace railhead::fabric
