#include <thread>

#include "daemon/fabric/loopback.hpp"
#include "fabric_pair.hpp"

namespace railhead::fabric::test {
namespace {

TEST(Loopback, WrongKeyEndsTheConnectionOnBothSides) {
  const auto hub = std::make_shared<LoopbackHub>();
  const FabricConfig config{.provider = "loopback", .hub = hub};
  Side a(config, 4096), b(config, 4096);
  const Connected peers = connect(a, b, make_token(1));
  Write write{.peer = peers.near, .local = a.region, .bytes = 64, .remote = b.key, .context = 3};
  write.remote.key ^= 1;
  ASSERT_TRUE(a.fabric->post_write(write));
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.down.contains(peers.near) && b.down.contains(peers.far); }));
  ASSERT_EQ(a.failed.size(), 1u);
  EXPECT_EQ(a.failed[0].first, 3u);
  EXPECT_TRUE(b.immediates.empty());
}

TEST(Loopback, WriteBeyondTheTargetIsRefused) {
  const auto hub = std::make_shared<LoopbackHub>();
  const FabricConfig config{.provider = "loopback", .hub = hub};
  Side a(config, 4096), b(config, 4096);
  const Connected peers = connect(a, b, make_token(1));
  const Write write{
      .peer = peers.near, .local = a.region, .bytes = 64, .remote = b.key, .remote_offset = UINT64_MAX - 16};
  ASSERT_TRUE(a.fabric->post_write(write));
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.down.contains(peers.near); }));
}

TEST(Loopback, EachSideMayHaveAThreadOfItsOwn) {
  const auto hub = std::make_shared<LoopbackHub>();
  const FabricConfig config{.provider = "loopback", .hub = hub};
  Side a(config, 1 << 16), b(config, 1 << 16);
  const Connected peers = connect(a, b, make_token(1));
  constexpr std::uint32_t kCount = 20'000;
  bool in_order = true;
  std::thread receiver([&] {
    std::uint32_t next = 0;
    const Deadline until = soon(milliseconds(10'000));
    while (next < kCount && steady_clock::now() < until) {
      b.poll();
      for (; !b.immediates.empty(); b.immediates.pop_front()) in_order &= b.immediates.front().second == next++;
    }
    in_order &= next == kCount;
  });
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const Status status =
        post(a, a, {.peer = peers.near, .local = a.region, .bytes = 64, .remote = b.key, .immediate = i, .context = i});
    if (!status.ok()) break;
  }
  EXPECT_TRUE(poll_until(
      {&a}, [&] { return a.done.size() == kCount; }, milliseconds(10'000)));
  receiver.join();
  EXPECT_TRUE(in_order);
}

}  // namespace
}  // namespace railhead::fabric::test
