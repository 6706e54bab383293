#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "daemon/fabric/ofi_msg.hpp"
#include "fabric_pair.hpp"

namespace railhead::fabric::test {
namespace {

const FabricConfig kTcp{.provider = "tcp", .endpoint = "msg", .bind = "127.0.0.1"};

bool has_ipv6() {
  const int descriptor = ::socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound = descriptor >= 0 && ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (descriptor >= 0) ::close(descriptor);
  return bound;
}

TEST(OfiMsg, WorksOverIpv6) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6 loopback";
  FabricConfig config = kTcp;
  config.bind = "::1";
  Side a(config, 4096), b(config, 4096);
  EXPECT_EQ(b.fabric->address().substr(0, 10), "tcp:[::1]:");
  const Connected peers = connect(a, b, make_token(1));
  ASSERT_TRUE(post(a, b, {.peer = peers.near, .local = a.region, .bytes = 4096, .remote = b.key, .immediate = 6}).ok());
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return !b.immediates.empty(); }));
}

TEST(OfiMsg, ListensOnTheGivenPortAndSaysWhenItIsTaken) {
  const Side first(kTcp, 4096);
  FabricConfig config = kTcp;
  const std::string address = first.fabric->address();
  config.port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto second = make_fabric(config);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("EADDRINUSE"), std::string::npos) << second.error().to_string();
}

TEST(OfiMsg, BytesOfAStrangerOnTheListenerHarmNobody) {
  Side a(kTcp, 4096), b(kTcp, 4096);
  const Connected peers = connect(a, b, make_token(1));
  const std::string address = b.fabric->address();
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int stranger = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(stranger, reinterpret_cast<sockaddr*>(&target), sizeof target), 0);
  const std::string noise(4096, 'x');
  ASSERT_EQ(::send(stranger, noise.data(), noise.size(), MSG_NOSIGNAL), static_cast<ssize_t>(noise.size()));
  for (int polls = 0; polls < 1000; ++polls) b.poll();
  ::close(stranger);
  ASSERT_TRUE(post(a, b, {.peer = peers.near, .local = a.region, .bytes = 4096, .remote = b.key, .immediate = 6}).ok());
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return !b.immediates.empty(); }));
  EXPECT_TRUE(b.down.empty());
}

TEST(OfiMsg, WriteWithAWrongKeyEndsTheConnectionByName) {
  Side a(kTcp, 4096), b(kTcp, 4096);
  const Connected peers = connect(a, b, make_token(1));
  RemoteKey wrong = b.key;
  wrong.key ^= 1;
  ASSERT_TRUE(post(a, b, {.peer = peers.near, .local = a.region, .bytes = 4096, .remote = wrong}).ok());
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.down.contains(peers.near) && b.down.contains(peers.far); }));
  EXPECT_TRUE(b.immediates.empty());
}

// What the two processes tell each other beside the fabric.
struct Meeting {
  char address[64];
  RemoteKey key;
};

class OfiMsgFork : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair_), 0);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      ::close(pair_[0]);
      ::_exit(serve());
    }
    ::close(pair_[1]);
  }

  void TearDown() override {
    ::close(pair_[0]);
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  // The child answers each write with the sum of its bytes, and polls until it is killed or alone.
  int serve() {
    Side side(kTcp, 1 << 16);
    const auto peer = side.fabric->expect_peer(make_token(1), soon());
    if (!peer) return 1;
    Meeting meeting{};
    std::strncpy(meeting.address, side.fabric->address().c_str(), sizeof meeting.address - 1);
    meeting.key = side.key;
    RemoteKey back;
    if (::write(pair_[1], &meeting, sizeof meeting) != sizeof meeting) return 1;
    if (::read(pair_[1], &back, sizeof back) != sizeof back) return 1;
    const Deadline until = soon();
    while (side.down.empty() && steady_clock::now() < until) {
      side.poll();
      for (; !side.immediates.empty(); side.immediates.pop_front()) {
        std::uint32_t sum = 0;
        for (const std::byte byte : side.memory) sum += static_cast<std::uint32_t>(byte);
        const Write answer{.peer = *peer, .local = side.region, .bytes = 0, .remote = back, .immediate = sum};
        if (!post(side, side, answer).ok()) return 1;
      }
    }
    return 0;
  }

  int pair_[2] = {-1, -1};
  pid_t child_ = -1;
};

TEST_F(OfiMsgFork, TwoProcessesAndTheDeathOfOne) {
  Side side(kTcp, 1 << 16);
  Meeting meeting{};
  ASSERT_EQ(::read(pair_[0], &meeting, sizeof meeting), static_cast<ssize_t>(sizeof meeting));
  ASSERT_EQ(::write(pair_[0], &side.key, sizeof side.key), static_cast<ssize_t>(sizeof side.key));
  const auto peer = side.fabric->open_peer(meeting.address, make_token(1), soon());
  ASSERT_TRUE(peer) << peer.error().to_string();
  ASSERT_TRUE(poll_until({&side}, [&] { return side.up.contains(*peer); }));
  for (std::uint32_t round = 1; round <= 20; ++round) {
    std::fill(side.memory.begin(), side.memory.end(), static_cast<std::byte>(round));
    ASSERT_TRUE(post(side, side,
                     {.peer = *peer, .local = side.region, .bytes = 1 << 16, .remote = meeting.key, .context = round})
                    .ok());
    ASSERT_TRUE(poll_until({&side}, [&] { return side.immediates.size() == 1; }));
    EXPECT_EQ(side.immediates.front().second, round << 16);
    side.immediates.clear();
  }
  ASSERT_EQ(::kill(child_, SIGKILL), 0);
  ASSERT_TRUE(poll_until({&side}, [&] { return side.down.contains(*peer); }));
  EXPECT_EQ(side.down.at(*peer).code(), Code::peer_lost);
}

}  // namespace
}  // namespace railhead::fabric::test
