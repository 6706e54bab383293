#include <algorithm>

#include "tests/unit/proxy/fabric_cases.hpp"

namespace railhead::daemon {
namespace {

class ProxyTraffic : public testing::TestWithParam<FabricCase> {};

TEST_P(ProxyTraffic, MovesChunksExactlyAndReturnsCredits) {
  Daemons daemons(2, GetParam());
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(group.establish());
  EXPECT_TRUE(group.exchange(300, 4096));
  EXPECT_TRUE(group.log(0).failures.empty());
  EXPECT_TRUE(group.close());
}

TEST_P(ProxyTraffic, UnevenDomainsAndOneSlotPerRing) {
  Daemons daemons(3, GetParam());
  GroupSpec spec;
  spec.domain_of_rank = {0, 1, 0, 2, 0, 1};
  spec.ring_slots = 1;
  spec.channels = 3;
  TestGroup group(1, {&daemons[0], &daemons[1], &daemons[2]}, spec);
  ASSERT_TRUE(group.establish());
  EXPECT_TRUE(group.exchange(40, 1024));
  EXPECT_TRUE(group.close());
}

TEST_P(ProxyTraffic, TwoGroupsShareOneConnection) {
  Daemons daemons(2, GetParam());
  TestGroup one(1, {&daemons[0], &daemons[1]});
  TestGroup two(2, {&daemons[1], &daemons[0]});
  ASSERT_TRUE(one.establish());
  ASSERT_TRUE(two.establish());
  EXPECT_TRUE(one.exchange(20, 512));
  EXPECT_TRUE(two.exchange(20, 512));
  EXPECT_EQ(daemons[0].report().peers.size(), 1U);
  EXPECT_TRUE(one.close());
  EXPECT_TRUE(two.exchange(20, 512));
  EXPECT_TRUE(two.close());
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ProxyTraffic, testing::Values(kLoopback, kShuffled, kTcp, kTcpShuffled),
                         [](const auto& test) { return test.param.name; });

TEST(Proxy, FillsTheFabricsQueueAndLosesNothing) {
  Daemons daemons(2, {"slow", "loopback", "slow=65536"});
  GroupSpec spec;
  spec.ring_slots = 128;
  TestGroup group(1, {&daemons[0], &daemons[1]}, spec);
  ASSERT_TRUE(group.establish());
  EXPECT_TRUE(group.exchange(400, 4096));
}

TEST(Proxy, AGroupOfOneDomainNeedsNoPeer) {
  Daemons daemons(1);
  GroupSpec spec;
  spec.domain_of_rank = {0, 0};
  TestGroup group(1, {&daemons[0]}, spec);
  EXPECT_TRUE(group.establish());
  EXPECT_TRUE(daemons[0].report().peers.empty());
  EXPECT_TRUE(group.close());
}

TEST(Proxy, SleepsWhenIdleAndWakesByTheBell) {
  Daemons daemons(2, kTcp);
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(group.establish());
  std::vector<std::chrono::steady_clock::duration> took(21);
  for (auto& duration : took) {
    const auto deadline = soon();
    while (!(daemons[0].sleeping() && daemons[1].sleeping()) && !deadline.expired()) std::this_thread::yield();
    ASSERT_FALSE(deadline.expired());
    const auto began = std::chrono::steady_clock::now();
    ASSERT_TRUE(group.exchange(1, 64));
    duration = std::chrono::steady_clock::now() - began;
  }
  std::nth_element(took.begin(), took.begin() + 10, took.end());
  // Waking by the tick alone takes half of its 100 ms on average, and two sides have to wake.
  EXPECT_LT(took[10], std::chrono::milliseconds(40));
}

TEST(Proxy, ReportsRingsPeersAndFabric) {
  Daemons daemons(2);
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(group.establish());
  ASSERT_TRUE(group.exchange(7, 64));
  const ProxyReport report = daemons[0].report();
  EXPECT_NE(report.fabric.find("loopback"), std::string::npos);
  EXPECT_NE(report.fabric.find("bound"), std::string::npos);
  ASSERT_EQ(report.peers.size(), 1U);
  EXPECT_EQ(report.peers[0].state, "up");
  EXPECT_EQ(report.peers[0].daemon.host, daemons[1].host);
  // Two ranks, two channels; as home and as forwarder; to and fro.
  ASSERT_EQ(report.rings.size(), 16U);
  EXPECT_GE(report.peers[0].tx_bytes, 8U * 7 * 64);
  for (const RingReport& ring : report.rings) {
    EXPECT_EQ(ring.head, 7U);
    EXPECT_EQ(ring.tail, 7U);
    EXPECT_GE(ring.peer, 2);
    EXPECT_LT(ring.rank, 2);
  }
}

TEST(Proxy, RefusesAConfigurationThatCannotWork) {
  ProxyConfig config;
  config.fabric.provider = "loopback";
  config.fabric.hub = std::make_shared<fabric::LoopbackHub>();
  EXPECT_EQ(Proxy::start(config, {}).error().code(), Code::invalid_argument);
  Pages page(4096);
  config.page = reinterpret_cast<ipc::DaemonPage*>(page.data());
  config.cpus = "0-x";
  EXPECT_NE(Proxy::start(config, {}).error().message().find("'x'"), std::string::npos);
  config.cpus.clear();
  config.rings_per_peer = 70000;
  EXPECT_NE(Proxy::start(config, {}).error().message().find("70000"), std::string::npos);
}

}  // namespace
}  // namespace railhead::daemon
