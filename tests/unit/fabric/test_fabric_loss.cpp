// Peers that go away, on every back end: nothing hangs, every write ends once, and the next connection works.
#include <set>

#include "fabric_pair.hpp"

namespace railhead::fabric::test {
namespace {

constexpr std::size_t kBytes = 1 << 16;

class FabricLoss : public testing::TestWithParam<Backend> {
 protected:
  std::unique_ptr<Side> make_side() { return std::make_unique<Side>(GetParam().config(hub_), kBytes); }

  std::shared_ptr<LoopbackHub> hub_ = std::make_shared<LoopbackHub>();
};

Write write_to(const Side& from, const Side& to, PeerId peer, std::uint32_t number) {
  return {
      .peer = peer, .local = from.region, .bytes = kBytes, .remote = to.key, .immediate = number, .context = number};
}

void expect_a_working_write(Side& from, Side& to, Connected peers) {
  const std::size_t before = to.immediates.size();
  ASSERT_TRUE(post(from, to, write_to(from, to, peers.near, 4711)).ok());
  ASSERT_TRUE(poll_until({&from, &to}, [&] { return to.immediates.size() > before; }));
  EXPECT_EQ(to.immediates.back().second, 4711u);
}

TEST_P(FabricLoss, WritesToADestroyedPeerAllEndAndTheNextConnectionWorks) {
  auto a = make_side(), b = make_side();
  const Connected peers = connect(*a, *b, make_token(1));
  const Write blank = write_to(*a, *b, peers.near, 0);
  std::uint64_t posted = 0;
  const auto post_some = [&](std::uint64_t limit) {
    while (posted < limit) {
      Write write = blank;
      write.context = posted;
      const auto state = a->fabric->post_write(write);
      if (!state || *state == PostState::again) return;
      ++posted;
    }
  };
  ASSERT_TRUE(poll_until({a.get(), b.get()}, [&] { return post_some(600), posted == 600; }));
  const auto start = steady_clock::now();
  b.reset();
  ASSERT_TRUE(poll_until({a.get()}, [&] { return post_some(1000), a->down.contains(peers.near); }));
  EXPECT_LT(steady_clock::now() - start, kPatience);
  EXPECT_EQ(a->done.size() + a->failed.size(), posted);
  EXPECT_FALSE(a->failed.empty());
  EXPECT_EQ(a->events_after_down, 0u);
  std::set<std::uint64_t> ended(a->done.begin(), a->done.end());
  for (const auto& [context, status] : a->failed) {
    ended.insert(context);
    EXPECT_NE(status.message().find("(E"), std::string::npos) << status.to_string();
  }
  EXPECT_EQ(ended.size(), posted);
  EXPECT_EQ(a->fabric->post_write(blank).error().code(), Code::peer_lost);
  EXPECT_TRUE(a->fabric->deregister(a->region));
  a->region = a->fabric->register_memory(a->memory.data(), a->memory.size()).value();

  b = make_side();
  expect_a_working_write(*a, *b, connect(*a, *b, make_token(2)));
}

TEST_P(FabricLoss, IdlePeerLearnsThatTheOtherClosed) {
  auto a = make_side(), b = make_side();
  const Connected peers = connect(*a, *b, make_token(1));
  a->fabric->close_peer(peers.near);
  ASSERT_TRUE(poll_until({a.get(), b.get()}, [&] { return b->down.contains(peers.far); }));
  EXPECT_EQ(b->down.at(peers.far).code(), Code::peer_lost);
  EXPECT_FALSE(a->down.contains(peers.near)) << "one's own close is not news";
  a->fabric->close_peer(peers.near);  // does nothing
  expect_a_working_write(*a, *b, connect(*a, *b, make_token(2)));
}

TEST_P(FabricLoss, ClosingEndsOwnOutstandingWrites) {
  auto a = make_side(), b = make_side();
  const Connected peers = connect(*a, *b, make_token(1));
  std::uint32_t posted = 0;
  while (posted < 64) {
    const auto state = a->fabric->post_write(write_to(*a, *b, peers.near, posted));
    ASSERT_TRUE(state);
    if (*state == PostState::again) break;
    ++posted;
  }
  a->fabric->close_peer(peers.near);
  ASSERT_TRUE(poll_until({a.get(), b.get()},
                         [&] { return a->done.size() + a->failed.size() == posted && b->down.contains(peers.far); }));
  EXPECT_EQ(a->down.size(), 0u);
  EXPECT_TRUE(a->fabric->deregister(a->region));
}

TEST_P(FabricLoss, NobodyAtTheAddress) {
  auto a = make_side(), b = make_side();
  const std::string address = b->fabric->address();
  b.reset();
  const auto peer = a->fabric->open_peer(address, make_token(1), soon(milliseconds(500)));
  if (!peer) {
    EXPECT_EQ(peer.error().code(), Code::peer_lost);
    return;
  }
  ASSERT_TRUE(poll_until({a.get()}, [&] { return a->down.contains(*peer); }));
  EXPECT_TRUE(a->up.empty());
}

TEST_P(FabricLoss, OtherPeersGoOn) {
  auto a = make_side(), b = make_side(), c = make_side();
  const Connected to_b = connect(*a, *b, make_token(1));
  const Connected to_c = connect(*a, *c, make_token(2));
  b.reset();
  ASSERT_TRUE(poll_until({a.get(), c.get()}, [&] { return a->down.contains(to_b.near); }));
  EXPECT_FALSE(a->down.contains(to_c.near));
  expect_a_working_write(*a, *c, to_c);
}

INSTANTIATE_TEST_SUITE_P(Backends, FabricLoss, testing::ValuesIn(all_backends()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace railhead::fabric::test
