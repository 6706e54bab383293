#include "tests/unit/proxy/fabric_cases.hpp"

namespace railhead::daemon {
namespace {

// Fills every ring of every rank and submits, without anybody receiving.
void flood(TestGroup& group) {
  for (const auto& rank : group.ranks) {
    for (std::uint32_t tx = 0; tx < rank->rings.tx_count(); ++tx) {
      while (rank->try_send(tx, 4096)) {
      }
    }
    group.daemon_of(rank->rank).ring_if_needed();
  }
}

class ProxyClose : public testing::TestWithParam<FabricCase> {};

TEST_P(ProxyClose, WithTrafficInFlightLeavesTheConnectionAndOtherGroupsAlone) {
  Daemons daemons(2, GetParam());
  TestGroup stays(9, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(stays.establish());
  for (std::uint8_t id = 1; id <= 8; ++id) {
    TestGroup group(id, {&daemons[0], &daemons[1]});
    ASSERT_TRUE(group.establish());
    flood(group);
    ASSERT_TRUE(group.close());
    EXPECT_TRUE(group.log(0).failures.empty() && group.log(1).failures.empty());
  }
  EXPECT_TRUE(stays.exchange(10, 512));
  EXPECT_TRUE(stays.log(0).failures.empty());
  EXPECT_EQ(daemons[0].report().peers.at(0).state, "up");
  EXPECT_TRUE(stays.close());
}

TEST_P(ProxyClose, NumbersComeBackUnderAnotherGeneration) {
  Daemons daemons(2, GetParam());
  std::map<std::uint16_t, std::uint8_t> generations;
  bool reused = false;
  // 20 rings a group of 511 numbers: they come round within 30 groups.
  for (std::uint8_t id = 1; id <= 60; ++id) {
    TestGroup group(id, {&daemons[0], &daemons[1]});
    ASSERT_TRUE(group.establish());
    const auto offers = group.offers(0);
    for (const auto& ring : offers->at(1).rings) {
      const auto [known, fresh] = generations.try_emplace(ring.number, ring.generation);
      if (fresh) continue;
      EXPECT_EQ(ring.generation, known->second + 1);
      known->second = ring.generation;
      reused = true;
    }
    ASSERT_TRUE(group.exchange(3, 128));
    ASSERT_TRUE(group.close());
  }
  EXPECT_TRUE(reused);
}

TEST_P(ProxyClose, WaitsForWhatThePeerSaidItPosted) {
  Daemons daemons(2, GetParam());
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(group.establish());
  flood(group);
  group.begin_close(0);
  // The peer has not spoken: a report, which runs behind the pass that would have withdrawn, still shows the rings.
  static_cast<void>(daemons[0].report());
  EXPECT_FALSE(daemons[0].report().rings.empty());
  EXPECT_FALSE(group.log(0).closed);
  group.pass_quiesced(0);
  group.begin_close(1);
  group.pass_quiesced(1);
  EXPECT_TRUE(group.wait_closed(0));
  EXPECT_TRUE(group.wait_closed(1));
  EXPECT_TRUE(daemons[0].report().rings.empty());
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ProxyClose, testing::Values(kLoopback, kShuffled, kTcp),
                         [](const auto& test) { return test.param.name; });

TEST(Proxy, AGroupThatNeverBeganClosesAtOnceAndKeepsTheConnection) {
  Daemons daemons(2);
  TestGroup stays(9, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(stays.establish());
  TestGroup group(1, {&daemons[0], &daemons[1]});
  group.open(0);
  ASSERT_TRUE(group.offers(0));
  group.begin_close(0);
  EXPECT_TRUE(group.wait_closed(0));
  EXPECT_TRUE(stays.exchange(3, 64));
}

TEST(Proxy, ClosingAnUnknownGroupIsDone) {
  Daemons daemons(1);
  GroupKey key{};
  key.fill(77);
  daemons[0].proxy->close_group(key, CloseMode::abandon);
  EXPECT_TRUE(daemons[0].wait(key, [](const GroupLog& log) { return log.closed; }));
}

TEST(Proxy, APeerThatNeverQuiescesLosesItsConnectionAfterFiveSeconds) {
  Daemons daemons(2);
  TestGroup other(9, {&daemons[0], &daemons[1]});
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(other.establish());
  ASSERT_TRUE(group.establish());
  const auto began = std::chrono::steady_clock::now();
  group.begin_close(0);
  EXPECT_TRUE(group.wait_closed(0));
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  ASSERT_TRUE(other.wait_failed(0));
  EXPECT_NE(other.log(0).failures[0].status.message().find("its last writes had not settled"), std::string::npos);
  EXPECT_TRUE(other.wait_failed(1));
}

}  // namespace
}  // namespace railhead::daemon
