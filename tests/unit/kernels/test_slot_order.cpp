#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/plan/slot_order.hpp"
#include "tests/unit/kernels/random.hpp"

namespace railhead::kernels {
namespace {

using Pairs = std::vector<std::pair<uint32_t, uint16_t>>;

Pairs ordered(const std::vector<uint32_t>& places) {
  const auto top_k = static_cast<uint32_t>(places.size());
  std::vector<SlotKey> keys(slot_key_room(top_k));
  keys.resize(order_slots(places.data(), top_k, keys.data()));
  Pairs pairs;
  for (const SlotKey key : keys) pairs.emplace_back(place_of(key), slot_of(key));
  return pairs;
}

TEST(SlotOrder, ByPlaceThenSlotWithoutUnusedOnes) {
  EXPECT_EQ(ordered({7, kUnusedPlace, 2, 7, 0}), (Pairs{{0, 4}, {2, 2}, {7, 0}, {7, 3}}));
  EXPECT_EQ(ordered({kUnusedPlace, kUnusedPlace}), Pairs{});
  EXPECT_EQ(ordered({kUnusedPlace - 1, 0}), (Pairs{{0, 1}, {kUnusedPlace - 1, 0}}));
}

TEST(SlotOrder, EveryWidthMatchesAPlainSort) {
  SCOPED_TRACE(test::seed_text());
  std::mt19937_64 random(test::seed());
  for (uint32_t top_k = 1; top_k <= 100; ++top_k) {
    for (const uint32_t most : {3u, 300u, kUnusedPlace - 1}) {
      std::vector<uint32_t> places(top_k);
      Pairs expected;
      for (uint32_t slot = 0; slot < top_k; ++slot) {
        places[slot] = test::pick(random, 0, 4) == 0 ? kUnusedPlace : test::pick(random, 0, most);
        if (places[slot] != kUnusedPlace) expected.emplace_back(places[slot], static_cast<uint16_t>(slot));
      }
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(ordered(places), expected) << "top-" << top_k;
    }
  }
}

}  // namespace
}  // namespace railhead::kernels
