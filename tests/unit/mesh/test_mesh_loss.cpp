// Loss and restart of a peer process, and what a peer that breaks the rules is told.
#include <signal.h>

#include <zmq.hpp>

#include "daemon/mesh/frame.hpp"
#include "tests/unit/mesh/mesh_node.hpp"
#include "tests/unit/mesh/peer_process.hpp"

namespace railhead::mesh {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

MeshConfig quick() {
  MeshConfig config;
  config.heartbeat = milliseconds(250);
  config.timeout = milliseconds(1000);
  return config;
}

void greet(MeshNode& node, const PeerProcess& peer) {
  const std::size_t before = node.log.all_messages().size();
  ASSERT_TRUE(node.mesh->retain(peer.address).ok());
  ASSERT_TRUE(node.send(peer.address, "hello").ok());
  ASSERT_TRUE(node.log.wait_messages(before + 1));
}

// From the signal to the report that the peer is lost, which says so.
std::int64_t ms_to_loss(MeshNode& node, const PeerProcess& peer, int signal, const std::string& says) {
  const auto sent = Clock::now();
  peer.signal(signal);
  const auto reason = node.log.wait_down(peer.address.host_id);
  const auto took = duration_cast<milliseconds>(Clock::now() - sent);
  EXPECT_TRUE(reason && reason->code() == Code::peer_lost) << (reason ? reason->to_string() : "no report");
  EXPECT_TRUE(reason && reason->message().find(says) != std::string::npos) << (reason ? reason->message() : "");
  testing::Test::RecordProperty("loss_ms", static_cast<int>(took.count()));
  return took.count();
}

TEST(MeshLoss, KilledPeerIsReportedAtOnce) {
  MeshNode node;
  PeerProcess peer({"500", "2000"});
  greet(node, peer);
  EXPECT_LT(ms_to_loss(node, peer, SIGKILL, "was closed"), 500);
}

TEST(MeshLoss, StoppedPeerIsReportedWithinTheTimeoutAndHearsOfItWhenItWakes) {
  MeshNode node(quick());
  PeerProcess peer({"250", "1000"});
  greet(node, peer);
  const std::int64_t ms = ms_to_loss(node, peer, SIGSTOP, " 1000 ms");
  EXPECT_GE(ms, 400);
  EXPECT_LT(ms, 1500);
  // Awake again it is as good as new.
  peer.signal(SIGCONT);
  greet(node, peer);
}

TEST(MeshLoss, OrderlyEndOfThePeerIsSaid) {
  MeshNode node;
  PeerProcess peer({"500", "2000"});
  greet(node, peer);
  peer.finish();
  const auto reason = node.log.wait_down(peer.address.host_id);
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->message().find("shuts down"), std::string::npos) << reason->message();
}

TEST(MeshLoss, RestartAtTheSameEndpointWithANewIdWorksAndTheOldIdIsNamed) {
  MeshNode node(quick());
  PeerProcess first({"250", "1000"});
  greet(node, first);
  first.kill();
  ASSERT_TRUE(node.log.wait_down(first.address.host_id));
  PeerProcess second({"250", "1000", first.address.endpoint});
  ASSERT_EQ(second.address.endpoint, first.address.endpoint);
  greet(node, second);
  // The old identity at that address is gone, and the error says who lives there now.
  const std::size_t downs = node.log.all_downs().size();
  ASSERT_TRUE(node.send(first.address, "are you there?").ok());
  ASSERT_TRUE(node.log.wait([&] { return node.log.downs.size() > downs; }));
  EXPECT_EQ(node.log.all_downs().back().first, first.address.host_id);
  EXPECT_NE(node.log.all_downs().back().second.message().find(second.address.host_id.hex()), std::string::npos);
}

// Long enough that nothing below can come of a time-out.
MeshConfig patient() {
  MeshConfig config;
  config.timeout = std::chrono::minutes(10);
  return config;
}

// A daemon that was killed, and is being dialled where it was.
PeerAddress killed_and_dialled(MeshNode& node) {
  PeerProcess first({"250", "600000"});
  greet(node, first);
  first.kill();
  EXPECT_TRUE(node.log.wait_down(first.address.host_id));
  EXPECT_TRUE(node.send(first.address, "too late").ok());
  return first.address;
}

void expect_gave_way(MeshNode& node, const PeerAddress& earlier) {
  ASSERT_TRUE(node.log.wait([&] { return node.log.downs.size() >= 2; }));
  const Status reason = node.log.all_downs()[1].second;
  EXPECT_EQ(reason.code(), Code::peer_lost);
  EXPECT_NE(reason.message().find("at " + earlier.endpoint), std::string::npos) << reason.message();
}

TEST(MeshLoss, RestartedElsewhereAndNamedItIsReachedThoughItsOldPlaceIsBeingDialled) {
  MeshNode node(patient());
  const PeerAddress earlier = killed_and_dialled(node);
  PeerProcess second({"250", "600000", "tcp://127.0.0.1:0", earlier.host_id.hex()});
  greet(node, second);
  expect_gave_way(node, earlier);
  // Who still names the old place is told, and the daemon that is there does not suffer.
  ASSERT_TRUE(node.send(earlier, "stale").ok());
  ASSERT_TRUE(node.log.wait([&] { return node.log.downs.size() >= 3; }));
  EXPECT_NE(node.log.all_downs()[2].second.message().find("at " + second.address.endpoint + " is connected"),
            std::string::npos)
      << node.log.all_downs()[2].second.message();
  greet(node, second);
  EXPECT_EQ(node.log.all_downs().size(), 3U);
}

TEST(MeshLoss, RestartedElsewhereItsCallIsTakenThoughItsOldPlaceIsBeingDialled) {
  MeshNode node(patient());
  const PeerAddress earlier = killed_and_dialled(node);
  MeshConfig config = patient();
  config.host_id = earlier.host_id;
  MeshNode second(config);
  ASSERT_TRUE(second.mesh->retain(node.address()).ok());
  expect_gave_way(node, earlier);
  ASSERT_TRUE(node.send(second.address(), "welcome back").ok());
  ASSERT_TRUE(second.log.wait_messages(1));
}

TEST(MeshLoss, RestartedAtTheSameEndpointItIsReached) {
  MeshNode node(patient());
  const PeerAddress earlier = killed_and_dialled(node);
  PeerProcess second({"250", "600000", earlier.endpoint, earlier.host_id.hex()});
  greet(node, second);
}

TEST(MeshLoss, SecondDaemonWithTheSameIdIsRefused) {
  MeshConfig config = quick();
  config.host_id = random_host_id().value();
  MeshNode node(quick());
  MeshNode first(config);
  ASSERT_TRUE(first.mesh->retain(node.address()).ok());
  ASSERT_TRUE(first.log.wait_up(node.id()));
  MeshNode second(config);
  ASSERT_TRUE(second.mesh->retain(node.address()).ok());
  const auto reason = second.log.wait_down(node.id());
  ASSERT_TRUE(reason);
  EXPECT_EQ(reason->code(), Code::mismatch);
  EXPECT_NE(reason->message().find(first.mesh->endpoint()), std::string::npos) << reason->message();
  // The first one never noticed.
  ASSERT_TRUE(first.send(node.address(), "still me").ok());
  ASSERT_TRUE(node.log.wait_messages(1));
  EXPECT_TRUE(first.log.all_downs().empty());
}

TEST(MeshLoss, OwnIdAtTheOtherEndIsNamed) {
  MeshConfig config = quick();
  config.host_id = random_host_id().value();
  MeshNode a(config);
  MeshNode b(config);
  const HostId wanted = random_host_id().value();
  ASSERT_TRUE(a.mesh->retain({b.mesh->endpoint(), wanted}).ok());
  const auto reason = a.log.wait_down(wanted);
  ASSERT_TRUE(reason);
  EXPECT_FALSE(reason->ok());
}

// A bare socket that says what no daemon would.
class RawDealer {
 public:
  explicit RawDealer(const MeshNode& node) : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.connect(node.mesh->endpoint());
    hello.kind = FrameKind::hello;
    hello.from = random_host_id().value();
    hello.to = node.id();
    hello.text = "tcp://127.0.0.1:9";  // discard: nobody answers the dial back
  }
  void say(const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      socket_.send(zmq::buffer(parts[i]), i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }
  Frame answer() {
    zmq::message_t part;
    if (!socket_.recv(part)) return {};
    return decode_frame({part.data<std::byte>(), part.size()}).value();
  }
  Frame hello;

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

TEST(MeshLoss, OtherProtocolVersionIsRefusedByName) {
  MeshNode node;
  RawDealer raw(node);
  raw.hello.version = 77;
  raw.say({encode_frame(raw.hello)});
  const Frame answer = raw.answer();
  EXPECT_EQ(answer.kind, FrameKind::refuse);
  EXPECT_EQ(static_cast<Code>(answer.number), Code::version_mismatch);
  EXPECT_NE(answer.text.find("77"), std::string::npos) << answer.text;
  ASSERT_TRUE(node.log.wait([&] { return !node.log.refused.empty(); }));
  EXPECT_EQ(node.log.all_refused()[0].code(), Code::version_mismatch);
}

TEST(MeshLoss, DataBeforeHelloIsTurnedAway) {
  MeshNode node;
  RawDealer raw(node);
  Frame data;
  raw.say({encode_frame(data), "smuggled"});
  EXPECT_EQ(raw.answer().kind, FrameKind::refuse);
  EXPECT_TRUE(node.log.all_messages().empty());
}

TEST(MeshLoss, GarbageEndsThePeerButNotTheDaemon) {
  MeshNode node;
  for (const std::vector<std::string>& garbage :
       std::vector<std::vector<std::string>>{{"nonsense"}, {""}, {"a", "b", "c", "d"}, {std::string(5000, 'z')}}) {
    RawDealer raw(node);
    raw.say({encode_frame(raw.hello)});
    EXPECT_EQ(raw.answer().kind, FrameKind::welcome);
    raw.say(garbage);
    const auto reason = node.log.wait_down(raw.hello.from);
    ASSERT_TRUE(reason);
    EXPECT_EQ(reason->code(), Code::protocol) << reason->to_string();
  }
  MeshNode other;
  ASSERT_TRUE(other.send(node.address(), "fine").ok());
  EXPECT_TRUE(node.log.wait_messages(1));
}

// It called and ended before it could be dialled back, so that no connection of ours tells.
TEST(MeshLoss, RestartedAgainBeforeItWasDialledBackItIsWelcome) {
  MeshNode node(patient());
  const HostId id = random_host_id().value();
  for (const char* const endpoint : {"tcp://127.0.0.1:9", "tcp://127.0.0.1:10", "tcp://127.0.0.1:11"}) {
    RawDealer raw(node);
    raw.hello.from = id;
    raw.hello.need = true;
    raw.hello.text = endpoint;
    raw.say({encode_frame(raw.hello)});
    const Frame answer = raw.answer();
    EXPECT_EQ(answer.kind, FrameKind::welcome) << answer.text;
  }
}

TEST(MeshLoss, PeerThatCannotBeDialledBackIsLost) {
  MeshNode node(quick());
  RawDealer raw(node);
  raw.hello.need = true;
  raw.say({encode_frame(raw.hello)});
  const auto reason = node.log.wait_down(raw.hello.from);
  ASSERT_TRUE(reason);
  EXPECT_EQ(reason->code(), Code::peer_lost);
}

}  // namespace
}  // namespace railhead::mesh
