#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/unit/bench/temp_file.hpp"
#include "tools/ep-bench/routing.hpp"

namespace railhead::bench {
namespace {

using testing::HasSubstr;

Routing draw(const std::string& spec, const RoutingOptions& options, std::uint32_t rank, std::uint64_t round,
             std::uint32_t tokens) {
  const auto source = open_routing(spec, options);
  if (!source) {
    ADD_FAILURE() << source.error().message();
    return {};
  }
  return (*source)->draw(rank, round, tokens);
}

std::string error_of(const std::string& spec, const RoutingOptions& options) {
  const auto source = open_routing(spec, options);
  return source ? "no error" : source.error().message();
}

void expect_well_formed(const Routing& routing, std::int64_t experts) {
  for (std::size_t first = 0; first < routing.ids.size(); first += routing.top_k) {
    const auto ids = routing.ids.begin() + static_cast<std::ptrdiff_t>(first);
    const std::set<std::int64_t> distinct(ids, ids + routing.top_k);
    ASSERT_EQ(distinct.size(), routing.top_k);
    ASSERT_GE(*distinct.begin(), 0);
    ASSERT_LT(*distinct.rbegin(), experts);
    const auto weights = routing.weights.begin() + static_cast<std::ptrdiff_t>(first);
    ASSERT_GT(*std::min_element(weights, weights + routing.top_k), 0);
    ASSERT_NEAR(std::accumulate(weights, weights + routing.top_k, 0.0), 1, 1e-5);
  }
}

std::vector<std::uint32_t> loads_descending(const Routing& routing, std::uint32_t experts) {
  std::vector<std::uint32_t> loads(experts);
  for (const std::int64_t id : routing.ids) ++loads[static_cast<std::size_t>(id)];
  std::sort(loads.rbegin(), loads.rend());
  return loads;
}

class AnySource : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string spec() const {
    const std::string param = GetParam();
    return param == "text" ? "text:" + text_.path() : param;
  }

 private:
  // Long enough that two starting points rarely coincide.
  static std::string many_words() {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += "w" + std::to_string(i) + (i % 10 == 9 ? "\n" : " ");
    return text;
  }

  TempFile text_{many_words()};
};

TEST_P(AnySource, DrawsDistinctExpertsWithNormalisedWeights) {
  for (const RoutingOptions options : {RoutingOptions{256, 8, 1}, RoutingOptions{7, 7, 2}, RoutingOptions{1, 1, 3}}) {
    expect_well_formed(draw(spec(), options, 0, 0, 300), options.experts);
  }
}

TEST_P(AnySource, IsDeterministicAndDependsOnSeedRankAndRound) {
  const RoutingOptions options{64, 4, 9};
  const Routing base = draw(spec(), options, 1, 2, 50);
  const Routing again = draw(spec(), options, 1, 2, 50);
  EXPECT_EQ(base.ids, again.ids);
  EXPECT_EQ(base.weights, again.weights);
  EXPECT_NE(base.ids, draw(spec(), options, 2, 2, 50).ids);
  EXPECT_NE(base.ids, draw(spec(), options, 1, 3, 50).ids);
  EXPECT_NE(base.ids, draw(spec(), {64, 4, 10}, 1, 2, 50).ids);
}

TEST_P(AnySource, TakesAnyNumberOfTokens) {
  EXPECT_TRUE(draw(spec(), {64, 4, 1}, 0, 0, 0).ids.empty());
  EXPECT_EQ(draw(spec(), {64, 4, 1}, 0, 0, 4097).weights.size(), 4097u * 4);
}

TEST_P(AnySource, RefusesShapesThatCannotBe) {
  EXPECT_THAT(error_of(spec(), {4, 5, 1}), HasSubstr("top-k from 1 to the number of experts (4), got 5"));
  EXPECT_THAT(error_of(spec(), {0, 5, 1}), HasSubstr("number of experts from 1 to 1048576, got 0"));
  EXPECT_THAT(error_of(spec(), {4, 0, 1}), HasSubstr("got 0"));
}

INSTANTIATE_TEST_SUITE_P(Routing, AnySource, testing::Values("uniform", "zipf:1.2", "text"),
                         [](const auto& source) { return std::string(source.param).substr(0, 4); });

TEST(Routing, NarrowIdsAreTheSame) {
  const Routing routing = draw("uniform", {256, 8, 1}, 0, 0, 10);
  EXPECT_THAT(routing.ids32(), testing::ElementsAreArray(routing.ids));
}

TEST(Routing, UniformIsLevelAndZipfIsNot) {
  const auto level = loads_descending(draw("uniform", {16, 2, 1}, 0, 0, 8000), 16);
  EXPECT_LT(level.front(), 1150u);  // mean 1000, standard deviation 30
  EXPECT_GT(level.back(), 850u);
  const auto flat = loads_descending(draw("zipf:0", {16, 2, 1}, 0, 0, 8000), 16);
  EXPECT_LT(flat.front(), 1150u);
  // One draw from 1/n^1: the first has 1 / H(16) = 0.2958 of 16000.
  const auto steep = loads_descending(draw("zipf:1", {16, 1, 1}, 0, 0, 16000), 16);
  EXPECT_NEAR(steep[0], 4733, 250);
  EXPECT_NEAR(steep[1], 2366, 200);
  EXPECT_NEAR(steep[15], 296, 80);
}

TEST(Routing, BadSpecsAreNamed) {
  for (const char* spec : {"", "unifrom", "uniform:3", "zipf", "zipf:", "text:", "trace"}) {
    EXPECT_THAT(error_of(spec, {8, 2, 1}), HasSubstr("is none of uniform, zipf:EXPONENT, text:FILE, trace:FILE"));
  }
  for (const char* spec : {"zipf:x", "zipf:1x", "zipf:-1", "zipf:nan", "zipf:21"}) {
    EXPECT_THAT(error_of(spec, {8, 2, 1}), HasSubstr("exponent must be a number from 0 to 20"));
  }
}

TEST(TextRouting, AWordAlwaysPicksTheSameExperts) {
  const TempFile file("Apple, pear. APPLE\n-- apple");
  const Routing routing = draw("text:" + file.path(), {64, 4, 1}, 0, 0, 8);
  // Words in a circle: apple pear apple apple. Any start gives 6 apples and 2 pears, 4 apart.
  std::multiset<std::vector<std::int64_t>> choices;
  for (std::size_t token = 0; token < 8; ++token) {
    const auto first = routing.ids.begin() + static_cast<std::ptrdiff_t>(token * 4);
    choices.emplace(first, first + 4);
  }
  const std::set<std::vector<std::int64_t>> distinct(choices.begin(), choices.end());
  ASSERT_EQ(distinct.size(), 2u);
  const std::size_t one = choices.count(*distinct.begin());
  EXPECT_TRUE(one == 2 || one == 6);
}

TEST(TextRouting, SeedMovesTheStartNotTheHash) {
  const TempFile file("word");
  const std::string spec = "text:" + file.path();
  EXPECT_EQ(draw(spec, {64, 4, 1}, 0, 0, 1).ids, draw(spec, {64, 4, 2}, 5, 6, 1).ids);
}

TEST(TextRouting, MissingAndEmptyFilesAreErrors) {
  EXPECT_THAT(error_of("text:/nowhere/at/all", {8, 2, 1}), HasSubstr("/nowhere/at/all: No such file"));
  EXPECT_THAT(error_of("text:/", {8, 2, 1}), HasSubstr("Is a directory"));
  const TempFile empty("  ... \n");
  EXPECT_THAT(error_of("text:" + empty.path(), {8, 2, 1}), HasSubstr("no words in the file"));
}

}  // namespace
}  // namespace railhead::bench
