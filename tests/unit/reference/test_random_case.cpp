#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/reference/random_case.hpp"
#include "tests/unit/reference/cases.hpp"

namespace railhead::reference {
namespace {

Case empty_case() {
  Case test;
  test.domain_of_rank = {0, 1};
  test.rank_of_expert = default_rank_of_expert(16, 2);
  test.top_k = 4;
  test.hidden = 8;
  test.side_bytes = 3;
  return test;
}

TEST(RandomCase, SameSeedSameCase) {
  Case a = empty_case();
  Case b = empty_case();
  Case c = empty_case();
  fill_random(a, {50, 0}, 7);
  fill_random(b, {50, 0}, 7);
  fill_random(c, {50, 0}, 8);
  EXPECT_EQ(a.inputs[0].x, b.inputs[0].x);
  EXPECT_EQ(a.inputs[0].ids, b.inputs[0].ids);
  EXPECT_EQ(a.inputs[0].weights, b.inputs[0].weights);
  EXPECT_NE(a.inputs[0].x, c.inputs[0].x);
  EXPECT_NE(a.inputs[0].ids, c.inputs[0].ids);
  EXPECT_EQ(a.inputs[0].side.size(), 150u);
  EXPECT_TRUE(a.inputs[1].x.empty());
}

TEST(RandomCase, IdsAreDistinctWithoutOddities) {
  Case test = empty_case();
  fill_random(test, {500, 500}, 3, Oddities{.unused_slots = 0, .unused_tokens = 0, .repeated_slots = 0});
  for (const RankInput& input : test.inputs) {
    for (std::size_t first = 0; first < input.ids.size(); first += 4) {
      const std::set<std::int64_t> ids(input.ids.begin() + first, input.ids.begin() + first + 4);
      ASSERT_EQ(ids.size(), 4u);
      ASSERT_GE(*ids.begin(), 0);
      ASSERT_LT(*ids.rbegin(), 16);
    }
  }
}

TEST(RandomCase, OdditiesAppear) {
  Case test = empty_case();
  fill_random(test, {500, 500}, 3);
  int unused_tokens = 0;
  int repeated = 0;
  for (std::size_t first = 0; first < test.inputs[0].ids.size(); first += 4) {
    std::vector<std::int64_t> ids(test.inputs[0].ids.begin() + first, test.inputs[0].ids.begin() + first + 4);
    unused_tokens += std::ranges::count(ids, -1) == 4;
    std::erase(ids, -1);
    repeated += std::set<std::int64_t>(ids.begin(), ids.end()).size() < ids.size();
  }
  EXPECT_GT(unused_tokens, 0);
  EXPECT_GT(repeated, 0);

  fill_random(test, {20, 20}, 3, Oddities{.unused_slots = 0, .unused_tokens = 0, .only_expert = 5});
  EXPECT_THAT(test.inputs[1].ids, testing::Each(5));
}

TEST(RandomCase, SpecialValuesAppearOnlyWhenAsked) {
  for (const NumberType type : {NumberType::bf16, NumberType::fp16, NumberType::fp32}) {
    const auto plain = unpack(type, random_values(type, 4000, 1));
    EXPECT_TRUE(std::ranges::all_of(plain, [](float v) { return std::isnormal(v) && std::fabs(v) < 2.1f; }));
    const auto special = unpack(type, random_values(type, 4000, 1, 100));
    EXPECT_TRUE(std::ranges::any_of(special, [](float v) { return std::isnan(v); })) << name_of(type);
    EXPECT_TRUE(std::ranges::any_of(special, [](float v) { return std::isinf(v); })) << name_of(type);
    EXPECT_TRUE(std::ranges::any_of(special, [](float v) { return v == 0 && std::signbit(v); })) << name_of(type);
  }
}

// Every used slot is found again at its receiver with its bits and weights: the model against a second, independent
// count of the same thing.
TEST(RandomCase, ModelDeliversEveryUsedSlot) {
  for (const Layout layout : {Layout::rank, Layout::expert}) {
    Case test = empty_case();
    test.layout = layout;
    fill_random(test, {60, 33}, 11);
    std::size_t wanted = 0;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      for (std::uint32_t token = 0; token < test.inputs[rank].tokens; ++token)
        wanted += uses_of(test, rank, token).size();
    }
    std::int64_t delivered = 0;
    for (const Received& got : dispatch(test)) {
      delivered += got.offsets.back();
      for (std::size_t row = 0; row < got.rows; ++row) {
        const auto bytes = static_cast<std::ptrdiff_t>(test.row_bytes());
        const Bytes& x = test.inputs[static_cast<std::size_t>(got.source_rank[row])].x;
        ASSERT_TRUE(std::equal(got.x.begin() + static_cast<std::ptrdiff_t>(row) * bytes,
                               got.x.begin() + static_cast<std::ptrdiff_t>(row + 1) * bytes,
                               x.begin() + got.token[row] * bytes));
      }
    }
    EXPECT_EQ(static_cast<std::size_t>(delivered), wanted);
  }
}

}  // namespace
}  // namespace railhead::reference
