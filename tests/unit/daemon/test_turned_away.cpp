#include <gtest/gtest.h>

#include <chrono>

#include "daemon/control/turned_away.hpp"

namespace railhead::daemon {
namespace {

const Status kWrongKey(Code::permission, "a caller with a wrong key");
const Status kLeft(Code::peer_lost, "a caller that left");

TEST(TurnedAway, OneReasonIsSaidOnce) {
  TurnedAway turned_away;
  EXPECT_TRUE(turned_away.note(kWrongKey));
  EXPECT_FALSE(turned_away.note(kWrongKey));
  EXPECT_TRUE(turned_away.note(kLeft));
  EXPECT_FALSE(turned_away.note(kWrongKey));
}

TEST(TurnedAway, SaysNothingOfMuchEarlierTimes) {
  TurnedAway turned_away;
  EXPECT_EQ(turned_away.since({}), "");
  turned_away.note(kWrongKey);
  turned_away.note(kLeft);
  EXPECT_EQ(turned_away.since(TurnedAway::Clock::now() + std::chrono::hours(1)), "");
}

// Rank 1's host may have called before rank 0 began to wait for it.
TEST(TurnedAway, CountsWhatWasShortlyBefore) {
  TurnedAway turned_away;
  turned_away.note(kLeft);
  const auto after = TurnedAway::Clock::now() + std::chrono::seconds(10);
  EXPECT_EQ(turned_away.since(after), "; lately the mesh turned away: a caller that left");
}

// The last call of one with a wrong key may end in the middle.
TEST(TurnedAway, WhatWasWrongCountsMoreThanThatACallerLeft) {
  const auto before = TurnedAway::Clock::now();
  TurnedAway turned_away;
  turned_away.note(kLeft);
  EXPECT_NE(turned_away.since(before).find("that left"), std::string::npos);
  turned_away.note(kWrongKey);
  turned_away.note(kLeft);
  EXPECT_NE(turned_away.since(before).find("wrong key"), std::string::npos);
}

}  // namespace
}  // namespace railhead::daemon
