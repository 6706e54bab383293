#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <set>
#include <thread>

#include "daemon/mesh/endpoint.hpp"
#include "daemon/mesh/mesh.hpp"
#include "tests/unit/mesh/mesh_node.hpp"

namespace railhead::mesh {
namespace {

using std::chrono::milliseconds;

MeshConfig roomy() {
  MeshConfig config;
  config.queue_messages = 20'000;
  return config;
}

MeshKeys fresh_keys() {
  const std::string path = testing::TempDir() + "mesh-key-" + std::to_string(::getpid());
  ::unlink(path.c_str());
  const auto keys = generate_keys(path);
  ::unlink(path.c_str());
  return keys.value();
}

// Sends `count` numbered messages and checks that exactly they arrived, in order.
void exchange(MeshNode& from, MeshNode& to, int count) {
  for (int i = 0; i < count; ++i) ASSERT_TRUE(from.send(to.address(), std::to_string(i)).ok()) << i;
}
void expect_in_order(MeshNode& node, const std::vector<HostId>& senders, int count) {
  ASSERT_TRUE(node.log.wait_messages(senders.size() * static_cast<std::size_t>(count)));
  std::map<HostId, int> next;
  for (const auto& [from, text] : node.log.all_messages()) ASSERT_EQ(text, std::to_string(next[from]++)) << from.hex();
  for (const HostId& sender : senders) EXPECT_EQ(next[sender], count);
}

class MeshKeyed : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) keys_ = fresh_keys();
  }
  MeshConfig config() {
    MeshConfig result = roomy();
    result.keys = keys_;
    return result;
  }
  std::optional<MeshKeys> keys_;
};
INSTANTIATE_TEST_SUITE_P(Keys, MeshKeyed, testing::Bool(),
                         [](const auto& param) { return param.param ? "Curve" : "Plain"; });

TEST_P(MeshKeyed, TwoExchangeTenThousandMessagesInOrder) {
  MeshNode a(config());
  MeshNode b(config());
  exchange(a, b, 10'000);
  exchange(b, a, 10'000);
  expect_in_order(a, {b.id()}, 10'000);
  expect_in_order(b, {a.id()}, 10'000);
  EXPECT_TRUE(a.log.wait_up(b.id()));
}

TEST_P(MeshKeyed, ThreeExchangeTenThousandMessagesInOrder) {
  MeshNode a(config());
  MeshNode b(config());
  MeshNode c(config());
  std::vector<MeshNode*> nodes = {&a, &b, &c};
  std::vector<std::future<void>> senders;
  for (MeshNode* from : nodes) {
    for (MeshNode* to : nodes) {
      if (from != to) senders.push_back(std::async(std::launch::async, [=] { exchange(*from, *to, 1'700); }));
    }
  }
  for (auto& sender : senders) sender.get();
  expect_in_order(a, {b.id(), c.id()}, 1'700);
  expect_in_order(b, {a.id(), c.id()}, 1'700);
  expect_in_order(c, {a.id(), b.id()}, 1'700);
}

TEST_P(MeshKeyed, LargestMessageArrivesWholeAndOneMoreByteIsRefused) {
  MeshNode a(config());
  MeshNode b(config());
  std::string big(kMaxMessageBytes, 'x');
  for (std::size_t i = 0; i < big.size(); i += 4099) big[i] = static_cast<char>(i);
  ASSERT_TRUE(a.send(b.address(), big).ok());
  ASSERT_TRUE(b.log.wait_messages(1));
  EXPECT_TRUE(b.log.all_messages()[0].second == big);
  big += 'x';
  EXPECT_EQ(a.send(b.address(), big).code(), Code::limit_exceeded);
}

TEST(Mesh, EmptyMessageIsAMessage) {
  MeshNode a;
  MeshNode b;
  ASSERT_TRUE(a.send(b.address(), "").ok());
  ASSERT_TRUE(b.log.wait_messages(1));
  EXPECT_EQ(b.log.all_messages()[0].second, "");
}

TEST(Mesh, WrongKeyIsRefusedWithAPointerToTheKeyFile) {
  MeshConfig config;
  config.heartbeat = milliseconds(100);
  config.timeout = milliseconds(500);
  config.keys = fresh_keys();
  MeshNode server(config);
  config.keys = fresh_keys();
  MeshNode stranger(config);
  config.keys.reset();
  MeshNode unkeyed(config);
  for (MeshNode* node : {&stranger, &unkeyed}) {
    ASSERT_TRUE(node->send(server.address(), "let me in").ok());
    const auto reason = node->log.wait_down(server.id());
    ASSERT_TRUE(reason);
    EXPECT_EQ(reason->code(), Code::permission) << reason->to_string();
    EXPECT_NE(reason->message().find("mesh.key_file"), std::string::npos) << reason->message();
  }
  // The other side says of both, too, what to look at. Their address is not certain: they are turned away at once, and
  // the one without a key does not call again.
  for (const bool wrong_key : {true, false}) {
    EXPECT_TRUE(server.log.wait([&] {
      return std::any_of(server.log.refused.begin(), server.log.refused.end(), [&](const Status& refused) {
        const std::string& text = refused.message();
        return text.starts_with("a caller from ") && text.find("mesh.key_file") != std::string::npos &&
               (text.find("does not hold this cluster's mesh key") != std::string::npos) == wrong_key;
      });
    })) << (wrong_key ? "wrong key" : "no key");
  }
  EXPECT_TRUE(server.log.all_messages().empty());
  EXPECT_TRUE(server.log.all_ups().empty());
}

TEST(Mesh, ACallerWhoSaysNothingIsNamedByItsAddress) {
  MeshConfig config;
  config.timeout = milliseconds(2000);
  MeshNode server(config);
  const auto endpoint = parse_endpoint(server.address().endpoint, "the server");
  ASSERT_TRUE(endpoint);
  const int caller = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(endpoint->port);
  ASSERT_EQ(::connect(caller, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(server.log.wait([&] { return !server.log.refused.empty(); }));
  ::close(caller);
  const auto refused = server.log.all_refused();
  ASSERT_FALSE(refused.empty());
  EXPECT_EQ(refused[0].code(), Code::peer_lost);
  EXPECT_TRUE(refused[0].message().starts_with("a caller from 127.0.0.1 left, or fell silent")) << refused[0].message();
}

TEST(Mesh, WithoutKeysOnlyLoopbackUnlessInsecure) {
  MeshConfig config;
  config.host_id = random_host_id().value();
  config.bind = "tcp://0.0.0.0:0";
  config.advertise = "tcp://127.0.0.1:0";
  const auto refused = Mesh::start(config, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::permission);
  EXPECT_NE(refused.error().message().find("epctl keygen"), std::string::npos);

  config.insecure = true;
  const auto insecure = Mesh::start(config, {});
  ASSERT_TRUE(insecure) << insecure.error().to_string();
  EXPECT_TRUE((*insecure)->endpoint().starts_with("tcp://127.0.0.1:"));
  EXPECT_FALSE((*insecure)->endpoint().ends_with(":0"));

  config.insecure = false;
  config.keys = fresh_keys();
  EXPECT_TRUE(Mesh::start(config, {}));
}

TEST(Mesh, BadSettingsAreNamed) {
  MeshConfig good;
  good.host_id = random_host_id().value();
  const auto error_of = [](const MeshConfig& config) {
    const auto started = Mesh::start(config, {});
    return started ? std::string("started") : started.error().message();
  };
  MeshConfig config = good;
  config.bind = "127.0.0.1:0";
  EXPECT_NE(error_of(config).find("mesh.bind is '127.0.0.1:0'"), std::string::npos) << error_of(config);
  config = good;
  config.bind = "tcp://0.0.0.0:0";
  config.insecure = true;
  EXPECT_NE(error_of(config).find("mesh.advertise"), std::string::npos) << error_of(config);
  config = good;
  config.heartbeat = milliseconds(1500);
  EXPECT_NE(error_of(config).find("mesh.heartbeat_ms is 1500"), std::string::npos) << error_of(config);
  config = good;
  config.host_id = {};
  EXPECT_NE(error_of(config).find("host id"), std::string::npos) << error_of(config);
}

TEST(Mesh, PortInUseIsUnavailable) {
  MeshNode a;
  MeshConfig config;
  config.host_id = random_host_id().value();
  config.bind = a.mesh->endpoint();
  const auto second = Mesh::start(config, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::unavailable);
}

TEST(Mesh, SpeaksIpv6) {
  MeshConfig config;
  config.host_id = random_host_id().value();
  config.bind = "tcp://[::1]:0";
  if (const auto probe = Mesh::start(config, {}); !probe)
    GTEST_SKIP() << "no IPv6 loopback: " << probe.error().message();
  config.host_id = {};
  MeshNode a(config);
  MeshNode b(config);
  EXPECT_TRUE(a.mesh->endpoint().starts_with("tcp://[::1]:"));
  exchange(a, b, 100);
  exchange(b, a, 100);
  expect_in_order(a, {b.id()}, 100);
  expect_in_order(b, {a.id()}, 100);
}

TEST(Mesh, FullQueueIsAnErrorAndNothingElseIsLost) {
  MeshConfig config;
  config.queue_messages = 8;
  MeshNode a(config);
  MeshNode b;
  std::promise<void> gate;
  b.on_text = [opened = gate.get_future().share()](const HostId&, const std::string&) { opened.wait(); };
  // b does not read: its socket, the connection and our queue fill up.
  const std::string filler(64 << 10, 'f');
  int queued = 0;
  Status last;
  for (; queued < 100'000 && last.ok(); ++queued) {
    last = a.send(b.address(), std::to_string(queued) + filler);
    if (queued < 64) std::this_thread::yield();
  }
  queued -= 1;
  EXPECT_EQ(last.code(), Code::limit_exceeded);
  EXPECT_NE(last.message().find("(limit 8)"), std::string::npos) << last.message();
  gate.set_value();
  ASSERT_TRUE(b.log.wait_messages(static_cast<std::size_t>(queued)));
  const auto messages = b.log.all_messages();
  for (int i = 0; i < queued; ++i) {
    EXPECT_EQ(messages[static_cast<std::size_t>(i)].second, std::to_string(i) + filler);
  }
}

TEST(Mesh, OwnHostIdAndBadEndpointAreRefusedAtOnce) {
  MeshNode a;
  EXPECT_EQ(a.send(a.address(), "me").code(), Code::invalid_argument);
  EXPECT_EQ(a.send({"udp://x:1", random_host_id().value()}, "x").code(), Code::invalid_argument);
  const HostId stranger = random_host_id().value();
  EXPECT_TRUE(a.send({"", stranger}, "x").ok());
  const auto reason = a.log.wait_down(stranger);
  ASSERT_TRUE(reason);
  EXPECT_EQ(reason->code(), Code::unavailable);
}

TEST(Mesh, AnswersGoBackWithoutAnEndpoint) {
  MeshNode a;
  MeshNode b;
  b.on_text = [&b](const HostId& from, const std::string& text) {
    EXPECT_TRUE(b.send({"", from}, "re: " + text).ok());
  };
  ASSERT_TRUE(a.mesh->retain(b.address()).ok());
  ASSERT_TRUE(a.send(b.address(), "hello").ok());
  ASSERT_TRUE(a.log.wait_messages(1));
  EXPECT_EQ(a.log.all_messages()[0].second, "re: hello");
}

TEST(Mesh, LinkLivesAsLongAsEitherSideRetains) {
  MeshNode a;
  MeshNode b;
  ASSERT_TRUE(a.mesh->retain(b.address()).ok());
  ASSERT_TRUE(a.log.wait_up(b.id()));
  ASSERT_TRUE(b.log.wait_up(a.id()));
  ASSERT_TRUE(b.mesh->retain(a.address()).ok());
  ASSERT_TRUE(b.mesh->retain(a.address()).ok());
  // What follows a retain on the same link tells a that b holds it too.
  ASSERT_TRUE(b.send(a.address(), "I hold it too").ok());
  ASSERT_TRUE(a.log.wait_messages(1));
  ASSERT_TRUE(a.mesh->release(b.id()).ok());
  ASSERT_TRUE(b.mesh->release(a.id()).ok());
  // Still retained once by b: the link must work.
  ASSERT_TRUE(a.send(b.address(), "still here").ok());
  ASSERT_TRUE(b.log.wait_messages(1));
  EXPECT_TRUE(a.log.all_downs().empty());
  ASSERT_TRUE(b.mesh->release(a.id()).ok());
  for (auto [node, peer] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    const auto reason = node->log.wait_down(peer->id());
    ASSERT_TRUE(reason);
    EXPECT_TRUE(reason->ok()) << reason->to_string();
  }
  EXPECT_TRUE(a.mesh->peers().empty());
  // And again from cold.
  ASSERT_TRUE(a.mesh->retain(b.address()).ok());
  EXPECT_TRUE(a.log.wait_up(b.id(), 2));
}

TEST(Mesh, RetainAndReleaseRacingFromBothSidesLoseNothing) {
  MeshNode a(roomy());
  MeshNode b(roomy());
  const auto churn = [](MeshNode& from, MeshNode& to) {
    for (int i = 0; i < 500; ++i) {
      ASSERT_TRUE(from.mesh->retain(to.address()).ok());
      ASSERT_TRUE(from.send(to.address(), std::to_string(i)).ok());
      ASSERT_TRUE(from.mesh->release(to.id()).ok());
      if (i % 16 == 0) std::this_thread::sleep_for(milliseconds(1));  // lets links close in between
    }
  };
  std::thread other([&] { churn(b, a); });
  churn(a, b);
  other.join();
  expect_in_order(a, {b.id()}, 500);
  expect_in_order(b, {a.id()}, 500);
  for (auto* log : {&a.log, &b.log}) {
    for (const auto& [peer, reason] : log->all_downs()) EXPECT_TRUE(reason.ok()) << reason.to_string();
  }
}

TEST(Mesh, StopDeliversWhatWasQueuedAndSaysGoodBye) {
  MeshNode b(roomy());
  const HostId a_id = [&] {
    MeshNode a(roomy());
    EXPECT_TRUE(a.mesh->retain(b.address()).ok());  // else the link may have closed by itself before the stop
    exchange(a, b, 1'000);
    a.mesh->stop();
    EXPECT_EQ(a.send(b.address(), "late").code(), Code::invalid_usage);
    return a.id();
  }();
  expect_in_order(b, {a_id}, 1'000);
  const auto reason = b.log.wait_down(a_id);
  ASSERT_TRUE(reason);
  EXPECT_EQ(reason->code(), Code::peer_lost);
  EXPECT_NE(reason->message().find("shuts down"), std::string::npos) << reason->message();
}

TEST(Mesh, NobodyThereIsReportedWithinTheTimeout) {
  MeshConfig config;
  config.heartbeat = milliseconds(50);
  config.timeout = milliseconds(200);
  MeshNode a(config);
  const PeerAddress ghost{"tcp://127.0.0.1:1", random_host_id().value()};
  ASSERT_TRUE(a.send(ghost, "anybody?").ok());
  const auto reason = a.log.wait_down(ghost.host_id);
  ASSERT_TRUE(reason);
  EXPECT_EQ(reason->code(), Code::peer_lost);
  EXPECT_NE(reason->message().find(ghost.endpoint), std::string::npos);
}

TEST(Mesh, PeersShowsWhoIsUpAndHowFar) {
  MeshConfig config;
  config.heartbeat = milliseconds(10);
  MeshNode a(config);
  MeshNode b;
  ASSERT_TRUE(a.mesh->retain(b.address()).ok());
  ASSERT_TRUE(a.log.wait_up(b.id()));
  std::vector<PeerInfo> peers;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  do {
    peers = a.mesh->peers();
  } while ((peers.empty() || peers[0].round_trip_us == 0) && std::chrono::steady_clock::now() < end);
  ASSERT_EQ(peers.size(), 1u);
  EXPECT_EQ(peers[0].address.host_id, b.id());
  EXPECT_TRUE(peers[0].up);
  EXPECT_GT(peers[0].round_trip_us, 0u);
}

}  // namespace
}  // namespace railhead::mesh
