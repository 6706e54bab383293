// Random inputs over a pairwise cover of shapes, sizes, types, layouts and call styles: every received row, count, id,
// weight and map byte-equal, every combined value bit-equal to the reference model.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "tests/conformance/cover_cases.hpp"
#include "tests/conformance/pairwise.hpp"
#include "tests/support/lane.hpp"

namespace railhead::test {
namespace {

constexpr std::uint64_t kSeed = 20260101;
constexpr std::size_t kMostFailures = 5;

std::uint64_t cap() {
  return soak() ? 1ULL << 30 : kSanitized ? 4ULL << 20 : 60ULL << 20;
}

// ThreadSanitizer runs every n-th case.
std::size_t stride() {
  return kThreadSanitizer ? 12 : kAddressSanitizer ? 4 : 1;
}

void run_cover(std::uint32_t hosts, std::uint64_t chosen_seed) {
  const Cover cover = make_cover(chosen_seed, cap());
  Cluster cluster({.hosts = hosts});
  std::size_t ran = 0;
  std::size_t failed = 0;
  for (std::size_t i = 0; i < cover.cases.size() && failed < kMostFailures; ++i) {
    const CoverCase& c = cover.cases[i];
    if (c.hosts != hosts || i % stride() != 0) continue;
    ++ran;
    try {
      run_case(cluster, c.spec, c.styles);
    } catch (const std::exception& e) {
      ++failed;
      ADD_FAILURE() << "case " << i << ": " << e.what() << "\n  " << c.spec.describe();
    }
  }
  std::cout << cover.summary(chosen_seed, cap()) << "; " << ran << " of them on " << hosts << " host(s)\n";
  EXPECT_GT(ran, 0U);
}

// The long form goes on with other seeds for its hours (RAILHEAD_SOAK_HOURS over the three shapes of cluster).
void cover_of(std::uint32_t hosts) {
  const std::uint64_t first = seed(kSeed);
  if (!soak()) return run_cover(hosts, first);
  const auto end = std::chrono::steady_clock::now() + soak_time() / 3;
  std::uint64_t round = 0;
  do {
    run_cover(hosts, first + 1'000'000 * round++);
  } while (std::chrono::steady_clock::now() < end && !testing::Test::HasFailure());
}

TEST(Cover, OneHost) {
  cover_of(1);
}
TEST(Cover, TwoHosts) {
  cover_of(2);
}
TEST(Cover, ThreeHosts) {
  cover_of(3);
}

// The generator itself: every possible pair is there, and a forbidden one is not.
TEST(Pairwise, HoldsEveryPossiblePairAndNoOther) {
  const std::vector<std::size_t> counts = {3, 4, 2, 5};
  const auto possible = [](const Levels& row) { return row[0] != 1 || row[3] != 2; };
  const PairwiseCover cover(counts, 7, possible);
  std::size_t found = 0;
  for (std::size_t a = 0; a < counts.size(); ++a) {
    for (std::size_t b = a + 1; b < counts.size(); ++b) {
      for (std::size_t la = 0; la < counts[a]; ++la) {
        for (std::size_t lb = 0; lb < counts[b]; ++lb) {
          found +=
              static_cast<std::size_t>(std::any_of(cover.rows().begin(), cover.rows().end(),
                                                   [&](const Levels& row) { return row[a] == la && row[b] == lb; }));
        }
      }
    }
  }
  EXPECT_EQ(found, cover.pairs());
  EXPECT_EQ(cover.pairs(), 3 * 4 + 3 * 2 + 3 * 5 + 4 * 2 + 4 * 5 + 2 * 5 - 1U);
  EXPECT_EQ(cover.impossible(), 1U);
}

TEST(Pairwise, SameSeedSameRows) {
  const auto any = [](const Levels&) { return true; };
  EXPECT_EQ(PairwiseCover({3, 3, 3}, 5, any).rows(), PairwiseCover({3, 3, 3}, 5, any).rows());
}

}  // namespace
}  // namespace railhead::test
