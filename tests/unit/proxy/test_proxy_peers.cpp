#include "tests/unit/proxy/fabric_cases.hpp"

namespace railhead::daemon {
namespace {

class ProxyPeers : public testing::TestWithParam<FabricCase> {};

TEST_P(ProxyPeers, ALostDaemonFailsExactlyTheGroupsThatSpanIt) {
  Daemons daemons(3, GetParam());
  TestGroup hit(1, {&daemons[0], &daemons[1]});
  TestGroup spared(2, {&daemons[0], &daemons[2]});
  ASSERT_TRUE(hit.establish());
  ASSERT_TRUE(spared.establish());
  ASSERT_TRUE(hit.exchange(5, 256));
  daemons.kill(1);
  ASSERT_TRUE(hit.wait_failed(0));
  const auto failure = hit.log(0).failures.at(0);
  EXPECT_EQ(failure.domain, 1);
  EXPECT_EQ(failure.rank, 0xffff);
  EXPECT_NE(failure.status.message().find("host 02020202"), std::string::npos) << failure.status.message();
  EXPECT_TRUE(spared.exchange(20, 256));
  EXPECT_TRUE(spared.log(0).failures.empty());
  // Nobody is left to say what was posted: the group closes all the same.
  hit.begin_close(0);
  EXPECT_TRUE(hit.wait_closed(0));
  EXPECT_EQ(hit.log(0).failures.size(), 1U);
}

TEST_P(ProxyPeers, DyingAmidTrafficIsReportedOnceAndClosesCleanly) {
  Daemons daemons(2, GetParam());
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(group.establish());
  for (std::uint32_t tx = 0; tx < 4; ++tx) {
    while (group.rank(0).try_send(tx, 2048)) {
    }
  }
  daemons[0].ring_if_needed();
  daemons.kill(1);
  ASSERT_TRUE(group.wait_failed(0));
  group.begin_close(0);
  EXPECT_TRUE(group.wait_closed(0));
  EXPECT_EQ(group.log(0).failures.size(), 1U);
}

TEST_P(ProxyPeers, ARestartedDaemonServesANewGroup) {
  Daemons daemons(2, GetParam());
  TestGroup before(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(before.establish());
  daemons.kill(1);
  ASSERT_TRUE(before.wait_failed(0));
  Daemon& restarted = daemons.add();
  TestGroup after(2, {&daemons[0], &restarted});
  ASSERT_TRUE(after.establish());
  EXPECT_TRUE(after.exchange(20, 512));
  before.begin_close(0);
  EXPECT_TRUE(before.wait_closed(0));
  EXPECT_TRUE(after.exchange(20, 512));
}

TEST_P(ProxyPeers, AHostThatTheMeshLostIsConnectedAnewForTheNextGroup) {
  Daemons daemons(2, GetParam());
  TestGroup before(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(before.establish());
  daemons[0].proxy->peer_lost({daemons[1].host, daemons[1].endpoint}, {Code::peer_lost, "heartbeats stopped"});
  ASSERT_TRUE(before.wait_failed(0));
  EXPECT_NE(before.log(0).failures[0].status.message().find("heartbeats stopped"), std::string::npos);
  ASSERT_TRUE(before.wait_failed(1));
  // The old group is still open on both sides: its ring numbers must not meet the new group's.
  TestGroup after(2, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(after.establish());
  EXPECT_TRUE(after.exchange(20, 512));
  EXPECT_TRUE(before.close());
  EXPECT_TRUE(after.exchange(20, 512));
}

// The mesh may tell the end of a daemon late. Either side of the new connection may have the lower host id, and dials.
TEST_P(ProxyPeers, TheLateNewsOfADaemonsEndDoesNotHitTheOneInItsPlace) {
  for (const std::size_t lost : {0U, 1U}) {
    Daemons daemons(2, GetParam());
    Daemon& stays = daemons[1 - lost];
    TestGroup before(1, {&daemons[lost], &stays});
    ASSERT_TRUE(before.establish());
    daemons.kill(lost);
    ASSERT_TRUE(before.wait_failed(1));
    TestGroup after(2, {&daemons.replace(lost), &stays});
    const auto news = [&] {
      stays.proxy->peer_lost({daemons[lost].host, daemons[lost].endpoint}, {Code::peer_lost, "it has ended"});
    };
    ASSERT_TRUE(after.establish(news));
    news();
    EXPECT_TRUE(after.exchange(20, 512));
  }
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ProxyPeers, testing::Values(kLoopback, kShuffled, kTcp),
                         [](const auto& test) { return test.param.name; });

TEST(Proxy, AFailedWriteFailsTheGroupByItsProvidersName) {
  Daemons daemons(2, {"fail", "loopback", "fail_nth=10"});
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(group.establish());
  for (std::uint32_t tx = 0; tx < 4; ++tx) {
    while (group.rank(0).try_send(tx, 64)) {
    }
  }
  daemons[0].ring_if_needed();
  ASSERT_TRUE(group.wait_failed(0));
  EXPECT_NE(group.log(0).failures[0].status.message().find("EIO"), std::string::npos);
  group.begin_close(0);
  EXPECT_TRUE(group.wait_closed(0));
}

struct BadOffer {
  std::string name;
  std::function<void(WireOffer&)> spoil;
  std::string says;
};

void PrintTo(const BadOffer& offer, std::ostream* out) {
  *out << offer.name;
}

class ProxyOffer : public testing::TestWithParam<BadOffer> {};

TEST_P(ProxyOffer, ThatDoesNotFitIsRefusedByName) {
  Daemons daemons(2);
  TestGroup group(1, {&daemons[0], &daemons[1]});
  group.open(0);
  group.open(1);
  WireOffer offer = group.offers(1)->at(0);
  GetParam().spoil(offer);
  daemons[0].proxy->connect_group(group.key, 1, offer);
  ASSERT_TRUE(daemons[0].wait(group.key, [](const GroupLog& log) { return !log.connected.empty(); }));
  const auto result = group.log(0).connected.at(1);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::protocol);
  EXPECT_NE(result.error().message().find(GetParam().says), std::string::npos) << result.error().message();
  group.begin_close(0);
  EXPECT_TRUE(group.wait_closed(0));
}

// Two ranks each, two channels: eight data rings and two header rings in one direction.
INSTANTIATE_TEST_SUITE_P(
    Kinds, ProxyOffer,
    testing::Values(BadOffer{"number_too_high", [](WireOffer& o) { o.rings[0].number = 512; },
                             "offers ring number 512, the limit here is 511"},
                    BadOffer{"number_zero", [](WireOffer& o) { o.rings[0].number = 0; }, "offers ring number 0"},
                    BadOffer{"number_twice", [](WireOffer& o) { o.rings[1].number = o.rings[0].number; }, "twice"},
                    BadOffer{"ring_missing", [](WireOffer& o) { o.rings.pop_back(); }, "offers 9 rings, 10 are needed"},
                    BadOffer{"ring_of_another_rank", [](WireOffer& o) { o.rings[0].rank = 77; },
                             "offers no ring of kind 0 for rank 2, index 2"}),
    [](const auto& test) { return test.param.name; });

TEST(Proxy, ASecondOfferForOneDomainIsRefused) {
  Daemons daemons(2);
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(group.establish());
  const Result<void> first = group.log(0).connected.at(1);
  ASSERT_TRUE(first);
  daemons[0].forget_connected(group.key);
  daemons[0].proxy->connect_group(group.key, 1, group.offers(1)->at(0));
  ASSERT_TRUE(daemons[0].wait(group.key, [](const GroupLog& log) { return !log.connected.empty(); }));
  EXPECT_FALSE(group.log(0).connected.at(1));
  EXPECT_TRUE(group.exchange(3, 64));
}

TEST(Proxy, AWrongTokenIsRefused) {
  Daemons daemons(2);
  TestGroup group(1, {&daemons[0], &daemons[1]});
  group.open(0);
  group.open(1);
  WireOffer offer = group.offers(1)->at(0);
  offer.token[3] ^= 1;
  daemons[0].proxy->connect_group(group.key, 1, offer);
  ASSERT_TRUE(daemons[0].wait(group.key, [](const GroupLog& log) { return !log.connected.empty(); }));
  ASSERT_FALSE(group.log(0).connected.at(1));
  EXPECT_EQ(group.log(0).connected.at(1).error().code(), Code::permission);
}

TEST(Proxy, RingNumbersAreALimitByName) {
  Daemons daemons(2);
  GroupSpec spec;
  spec.domain_of_rank = {0, 0, 0, 0, 1, 1, 1, 1};
  spec.channels = 64;
  TestGroup group(1, {&daemons[0], &daemons[1]}, spec);
  const auto established = group.establish();
  ASSERT_FALSE(established);
  EXPECT_EQ(established.error().code(), Code::limit_exceeded);
  TestGroup small(2, {&daemons[0], &daemons[1]});
  EXPECT_TRUE(small.establish());
  EXPECT_TRUE(small.exchange(3, 64));
}

}  // namespace
}  // namespace railhead::daemon
