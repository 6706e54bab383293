#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "daemon/proxy/rx_window.hpp"

namespace railhead::daemon::rail {
namespace {

using Arrival = RxWindow::Arrival;

TEST(RxWindow, CountsInOrder) {
  RxWindow window(4);
  for (std::uint16_t s = 0; s < 4; ++s) EXPECT_EQ(window.arrive(s), Arrival::fresh);
  EXPECT_EQ(window.prefix(), 4U);
}

TEST(RxWindow, HoldsBackWhatLiesBehindAGap) {
  RxWindow window(4);
  EXPECT_EQ(window.arrive(2), Arrival::fresh);
  EXPECT_EQ(window.arrive(1), Arrival::fresh);
  EXPECT_EQ(window.prefix(), 0U);
  EXPECT_EQ(window.arrive(0), Arrival::fresh);
  EXPECT_EQ(window.prefix(), 3U);
}

TEST(RxWindow, DropsDuplicatesBeforeAndBehindThePrefix) {
  RxWindow window(4);
  EXPECT_EQ(window.arrive(1), Arrival::fresh);
  EXPECT_EQ(window.arrive(1), Arrival::duplicate);
  EXPECT_EQ(window.arrive(0), Arrival::fresh);
  EXPECT_EQ(window.arrive(0), Arrival::duplicate);
  EXPECT_EQ(window.arrive(1), Arrival::duplicate);
  EXPECT_EQ(window.prefix(), 2U);
}

TEST(RxWindow, RefusesWhatTheSenderMayNotWriteYet) {
  RxWindow window(4);
  EXPECT_EQ(window.arrive(4), Arrival::outside);
  EXPECT_EQ(window.arrive(511), Arrival::outside);
  EXPECT_EQ(window.arrive(512), Arrival::duplicate);
  EXPECT_EQ(window.prefix(), 0U);
}

TEST(RxWindow, SurvivesManyWrapsInAnyOrderAtTheLargestSize) {
  RxWindow window(ipc::kMaxRingSlots);
  std::mt19937 random(7);
  std::uint64_t next = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> batch(1 + random() % ipc::kMaxRingSlots);
    for (auto& s : batch) s = next++;
    std::shuffle(batch.begin(), batch.end(), random);
    for (const auto s : batch) {
      ASSERT_EQ(window.arrive(s & 1023), Arrival::fresh);
      ASSERT_EQ(window.arrive(s & 1023), Arrival::duplicate);
    }
    ASSERT_EQ(window.prefix(), next);
  }
}

}  // namespace
}  // namespace railhead::daemon::rail
