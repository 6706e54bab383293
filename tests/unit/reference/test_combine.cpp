#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/reference/model.hpp"
#include "tests/unit/reference/cases.hpp"

namespace railhead::reference {
namespace {

using testing::ElementsAre;

constexpr NumberType kBf16 = NumberType::bf16;
constexpr NumberType kFp32 = NumberType::fp32;

// One token on rank 0 that uses one expert on every rank; values[r] is what rank r's expert made of it.
std::vector<float> combine_one_token(const std::vector<std::uint16_t>& domains, const std::vector<float>& values,
                                     const CombineOptions& options, std::vector<float> weights = {}) {
  const auto ranks = static_cast<std::uint32_t>(values.size());
  std::vector<std::vector<std::int64_t>> ids(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) ids[0].push_back(rank);
  Case test = numbered_case(ranks, ranks, ranks, options.weighted ? Layout::expert : Layout::rank, ids);
  test.domain_of_rank = domains;
  test.inputs[0].weights = std::move(weights);
  std::vector<Bytes> rows;
  for (const float value : values) rows.push_back(pack(options.input, {value}));
  return unpack(options.output, combine(test, dispatch(test), rows, options)[0]);
}

// Field report B18: 256 and seven times 1 is 263, rounded once: 264.
TEST(ReferenceCombine, SumsInFp32AndRoundsOnce) {
  const std::vector<std::uint16_t> one_domain(8, 0);
  EXPECT_THAT(combine_one_token(one_domain, {256, 1, 1, 1, 1, 1, 1, 1}, {}), ElementsAre(264));
}

TEST(ReferenceCombine, PartialsOfOtherDomainsAreRoundedToTheWireType) {
  // Home: 1. Domain 1: 256 + 1 + 1 + 1 = 259 -> 260 in bf16 (spacing 2, tie to even).
  const std::vector<std::uint16_t> domains = {0, 1, 1, 1, 1};
  const std::vector<float> values = {1, 256, 1, 1, 1};
  EXPECT_THAT(combine_one_token(domains, values, {.output = kFp32, .wire = kBf16}), ElementsAre(261));
  EXPECT_THAT(combine_one_token(domains, values, {.output = kFp32, .wire = kFp32}), ElementsAre(260));
  // The home's own partial (domain 1 is home now) is never rounded.
  EXPECT_THAT(combine_one_token({1, 1, 1, 1, 0}, {256, 1, 1, 1, 2}, {.output = kFp32, .wire = kBf16}),
              ElementsAre(261));
}

TEST(ReferenceCombine, DomainsAreAddedInAscendingOrderHomeOrNot) {
  // Domain 0: 1e8, domain 1 (home): -1e8 and domain 2: 1. Ascending: (1e8 - 1e8) + 1 = 1; home first and then 2, 0
  // would lose the 1.
  EXPECT_THAT(combine_one_token({1, 2, 0}, {-1e8f, 1, 1e8f}, {.input = kFp32, .output = kFp32, .wire = kFp32}),
              ElementsAre(1));
  // Inside a domain ranks ascend: (1e8 + 1) - 1e8 = 0.
  EXPECT_THAT(combine_one_token({0, 0, 0}, {1e8f, 1, -1e8f}, {.input = kFp32, .output = kFp32, .wire = kFp32}),
              ElementsAre(0));
}

TEST(ReferenceCombine, ProductAndSumRoundApart) {
  // (1 + 2^-12)^2 - 1 - 2^-11 is 2^-24 if fused and 0 if the product is rounded first.
  const float a = 1 + 0x1p-12f;
  const float b = -(1 + 0x1p-11f);
  EXPECT_THAT(combine_one_token({0, 0}, {b, a}, {.input = kFp32, .output = kFp32, .weighted = true}, {1, a}),
              ElementsAre(0));
}

TEST(ReferenceCombine, SumsStartFromTheFirstTerm) {
  const float y = combine_one_token({0, 0}, {-0.0f, -0.0f}, {.input = kFp32, .output = kFp32})[0];
  EXPECT_TRUE(std::signbit(y)) << "-0 + -0 is -0; starting from +0 would lose the sign";
}

TEST(ReferenceCombine, NansAreQuietAndStayWithTheirToken) {
  Case test = numbered_case(1, 1, 1, Layout::rank, {{0, 0, 0}});
  const std::vector<Bytes> rows = {pack(kFp32, {1, 2, 3})};
  std::vector<Bytes> poisoned = rows;
  const std::uint32_t signalling = 0x7f800001u;
  std::memcpy(poisoned[0].data() + 4, &signalling, 4);
  const Bytes y = combine(test, dispatch(test), poisoned, {.input = kFp32, .output = kFp32})[0];
  EXPECT_EQ(unpack(kFp32, y)[0], 1);
  EXPECT_TRUE(std::isnan(unpack(kFp32, y)[1]));
  std::uint32_t bits = 0;
  std::memcpy(&bits, y.data() + 4, 4);
  EXPECT_NE(bits & 0x00400000u, 0u);
  EXPECT_EQ(unpack(kFp32, y)[2], 3);
}

// Field report B03: a token without any used slot combines to exact +0, others are as without it.
TEST(ReferenceCombine, TokensWithoutRowsAreZero) {
  const Case test = numbered_case(2, 2, 2, Layout::rank, {{-1, -1, 0, 1}, {1, -1}});
  const std::vector<Received> received = dispatch(test);
  const auto y = combine(test, received, {pack(kBf16, {8}), pack(kBf16, {4, 2})}, {});
  const std::uint16_t first_bits =
      static_cast<std::uint16_t>(std::to_integer<int>(y[0][0]) | std::to_integer<int>(y[0][1]) << 8);
  EXPECT_EQ(first_bits, 0);
  EXPECT_THAT(unpack(kBf16, y[0]), ElementsAre(0, 12));
  EXPECT_THAT(unpack(kBf16, y[1]), ElementsAre(2));
}

TEST(ReferenceCombine, ExpertLayoutWeighsRowsAndSkipsPadding) {
  Case test = numbered_case(2, 4, 2, Layout::expert, {{3, 0}, {}});
  test.align = 2;
  test.inputs[0].weights = {.25f, .5f};
  const float poison = std::numeric_limits<float>::quiet_NaN();
  // Rank 0 holds expert 0 (one row and one of padding), rank 1 expert 3.
  const std::vector<Bytes> rows = {pack(kFp32, {10, poison}), pack(kFp32, {100, poison})};
  const CombineOptions weighted{.input = kFp32, .output = kFp32, .weighted = true};
  EXPECT_THAT(unpack(kFp32, combine(test, dispatch(test), rows, weighted)[0]), ElementsAre(30));
  const CombineOptions plain{.input = kFp32, .output = kFp32};
  EXPECT_THAT(unpack(kFp32, combine(test, dispatch(test), rows, plain)[0]), ElementsAre(110));
}

TEST(ReferenceCombine, ExpertsOfOneRankAscend) {
  // Slots name the experts in descending order; the sum must not: (1e8 + 1) - 1e8 = 0, not 1.
  Case test = numbered_case(1, 3, 3, Layout::expert, {{2, 1, 0}});
  const std::vector<Bytes> rows = {pack(kFp32, {1e8f, 1, -1e8f})};
  const CombineOptions plain{.input = kFp32, .output = kFp32};
  EXPECT_THAT(unpack(kFp32, combine(test, dispatch(test), rows, plain)[0]), ElementsAre(0));
}

TEST(ReferenceCombine, HiddenOfTheOutputsMayDifferFromTheInputs) {
  Case test = numbered_case(1, 1, 1, Layout::rank, {{0, 0}});
  const std::vector<Bytes> rows = {pack(NumberType::fp16, {1, 2, 3, 4})};
  const auto y = combine(test, dispatch(test), rows, {.input = NumberType::fp16, .output = kBf16, .hidden = 2});
  EXPECT_THAT(unpack(kBf16, y[0]), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace railhead::reference
