// Whatever bytes, and however many connections, come over the socket: only the connection itself ends.
#include <capnp/message.h>
#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <random>

#include "client/daemon_link.hpp"
#include "ipc/fd.hpp"
#include "tests/fault/hostile.hpp"

namespace railhead::test {
namespace {

using client::DaemonLink;

ipc::UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) fd.reset();
  return fd;
}

class HostileBytes : public Hostile {};

TEST_F(HostileBytes, RandomBytesOnTheSocket) {
  std::mt19937_64 random(3);
  for (int i = 0; i < (soak() ? 5000 : 200); ++i) {
    const ipc::UniqueFd fd = connect_to(socket());
    ASSERT_TRUE(fd);
    std::vector<std::uint64_t> words(1 + random() % 512);
    for (auto& word : words) word = random();
    // Every second one with a believable segment table: few segments, of sizes up to huge.
    if (i % 2 == 0) words[0] = (random() % 4) | ((random() >> (random() % 31)) << 32);
    ::send(fd.get(), words.data(), words.size() * 8, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

TEST_F(HostileBytes, AMessageOfTwoGigabytesIsNotWaitedFor) {
  const ipc::UniqueFd fd = connect_to(socket());
  const std::uint32_t table[2] = {0, 0x10000000};  // one segment of 2^28 words
  ::send(fd.get(), table, sizeof(table), MSG_NOSIGNAL);
  std::uint64_t byte = 0;
  // The daemon hangs up (it may say why first).
  while (::recv(fd.get(), &byte, sizeof(byte), 0) > 0) continue;
}

// Answers that nobody reads are the daemon's memory.
TEST_F(HostileBytes, AConnectionThatAsksAndNeverReadsIsClosed) {
  const ipc::UniqueFd fd = connect_to(socket());
  ASSERT_TRUE(fd);
  constexpr std::size_t kFarTooMuch = std::size_t{32} << 20;
  std::uint32_t question = 0;
  std::size_t sent = 0;
  bool hung_up = false;
  while (!hung_up && sent < kFarTooMuch) {
    std::vector<kj::byte> batch;
    for (int i = 0; i < 500; ++i) {
      capnp::MallocMessageBuilder message;
      message.initRoot<capnp::rpc::Message>().initBootstrap().setQuestionId(question++);
      const auto words = capnp::messageToFlatArray(message);
      batch.insert(batch.end(), words.asBytes().begin(), words.asBytes().end());
    }
    for (std::size_t at = 0; !hung_up && at < batch.size();) {
      const auto some = ::send(fd.get(), batch.data() + at, batch.size() - at, MSG_NOSIGNAL);
      hung_up = some <= 0;
      at += hung_up ? 0 : static_cast<std::size_t>(some);
    }
    sent += batch.size();
  }
  EXPECT_TRUE(hung_up) << sent << " bytes of questions taken";
  EXPECT_TRUE(
      eventually([&] { return world_.host(0).log().find("bytes of answers wait to be read") != std::string::npos; }));
}

// A label is kept and logged with every line of its session.
TEST_F(HostileBytes, ALabelOfAMegabyteIsCut) {
  const std::size_t before = world_.host(0).log().size();
  auto link = DaemonLink::connect({socket(), std::string(1 << 20, 'x')});
  ASSERT_TRUE(link) << link.error().message();
  EXPECT_LT(world_.host(0).log().size() - before, 4096U);
}

// It is tried again and again until there is one; once is enough to say.
TEST_F(HostileBytes, WithoutDescriptorsClientsWaitAndItIsSaidOnce) {
  if (kAddressSanitizer)
    GTEST_SKIP() << "UBSan looks at memory through a pipe, for which there is no descriptor either";
  rlimit usual{};
  ASSERT_EQ(::prlimit(world_.host(0).process().pid(), RLIMIT_NOFILE, nullptr, &usual), 0);
  const rlimit none{1, usual.rlim_max};
  ASSERT_EQ(::prlimit(world_.host(0).process().pid(), RLIMIT_NOFILE, &none, nullptr), 0);
  const ipc::UniqueFd waiting = connect_to(socket());
  const auto said = [&] {
    std::size_t lines = 0;
    const std::string log = world_.host(0).log();
    for (auto at = log.find("could not be accepted"); at != std::string::npos;
         at = log.find("could not be accepted", at + 1))
      ++lines;
    return lines;
  };
  EXPECT_TRUE(eventually([&] { return said() > 0; }));
  ::poll(nullptr, 0, 300);  // thirty tries
  ASSERT_EQ(::prlimit(world_.host(0).process().pid(), RLIMIT_NOFILE, &usual, nullptr), 0);
  EXPECT_EQ(said(), 1U);
  auto link = DaemonLink::connect({socket(), "after"});
  EXPECT_TRUE(link) << link.error().message();
}

// It holds a descriptor of the daemon, which others may need.
TEST_F(HostileBytes, AConnectionThatSaysNothingIsClosed) {
  const ipc::UniqueFd fd = connect_to(socket());
  ASSERT_TRUE(fd);
  pollfd closed{fd.get(), POLLRDHUP, 0};
  EXPECT_EQ(::poll(&closed, 1, 30'000), 1);
}

// More at once than the daemon's queue takes: later ones wait for their turn instead of failing.
TEST_F(HostileBytes, FiveHundredConnectionsComeAndGo) {
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(connect_to(socket()));
  for (int i = 0; i < (soak() ? 500 : 50); ++i) {
    auto link = DaemonLink::connect({socket(), "churn"});
    ASSERT_TRUE(link) << link.error().message();
  }
}

}  // namespace
}  // namespace railhead::test
