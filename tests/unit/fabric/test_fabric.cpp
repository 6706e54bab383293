// What every back end must do, one suite over all of them.
#include <poll.h>

#include <cstring>
#include <random>
#include <set>

#include "fabric_pair.hpp"

namespace railhead::fabric::test {
namespace {

constexpr std::size_t kSlots = 8;
constexpr std::size_t kSlotBytes = (1 << 20) + 4096;
constexpr std::byte kUntouched{0xEE};

class FabricSuite : public testing::TestWithParam<Backend> {
 protected:
  Side make_side(std::size_t bytes = kSlots * kSlotBytes) { return Side(GetParam().config(hub_), bytes); }

  std::shared_ptr<LoopbackHub> hub_ = std::make_shared<LoopbackHub>();
};

const std::vector<std::byte>& noise() {
  static const std::vector<std::byte> kNoise = [] {
    std::vector<std::byte> bytes(kSlotBytes + 256);
    std::mt19937_64 random(42);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }();
  return kNoise;
}

std::size_t size_of(std::uint32_t number) {
  static constexpr std::array<std::size_t, 7> kSizes = {0, 1, 255, 256, 257, 4096, 65536};
  return number % 200 == 99 ? (1 << 20) + 1 : kSizes[number % kSizes.size()];
}

// One direction of numbered writes; the receiving side only polls. A slot is used again when the far side has checked
// its last content and the provider has reported it.
class Stream {
 public:
  Stream(Side& from, Side& to, Connected peers, std::uint32_t count)
      : from_(from), to_(to), peers_(peers), count_(count), slot_free_(kSlots, true) {
    std::fill(to.memory.begin(), to.memory.end(), kUntouched);
  }

  void step(bool duplicates_allowed) {
    post_next();
    take_arrivals(duplicates_allowed);
    for (; reported_ < from_.done.size(); ++reported_) settle(static_cast<std::uint32_t>(from_.done[reported_]));
  }
  bool finished() const { return arrived_.size() == count_ && reported_ == count_; }
  bool good() const { return good_ && from_.failed.empty(); }

 private:
  void post_next() {
    while (next_ < count_ && slot_free_[next_ % kSlots]) {
      const std::size_t offset = next_ % kSlots * kSlotBytes;
      std::memcpy(from_.memory.data() + offset, noise().data() + next_ % 256, size_of(next_));
      const auto state = from_.fabric->post_write({.peer = peers_.near,
                                                   .local = from_.region,
                                                   .local_offset = offset,
                                                   .bytes = size_of(next_),
                                                   .remote = to_.key,
                                                   .remote_offset = offset,
                                                   .immediate = next_,
                                                   .context = next_});
      ASSERT_TRUE(state) << state.error().to_string();
      if (*state == PostState::again) return;
      slot_free_[next_ % kSlots] = false;
      ++next_;
    }
  }

  void take_arrivals(bool duplicates_allowed) {
    while (!to_.immediates.empty()) {
      const auto [peer, number] = to_.immediates.front();
      to_.immediates.pop_front();
      EXPECT_EQ(peer, peers_.far);
      if (!arrived_.insert(number).second) {
        EXPECT_TRUE(duplicates_allowed) << "immediate " << number << " came twice";
        continue;
      }
      check(number);
      settle(number);
    }
  }

  void check(std::uint32_t number) {
    std::byte* slot = to_.memory.data() + number % kSlots * kSlotBytes;
    const bool same = std::memcmp(slot, noise().data() + number % 256, size_of(number)) == 0;
    const bool inside = slot[size_of(number)] == kUntouched;
    if (!same || !inside) good_ = false;
    EXPECT_TRUE(same) << "write " << number << " of " << size_of(number) << " bytes differs";
    EXPECT_TRUE(inside) << "write " << number << " went beyond its end";
    std::memset(slot, static_cast<int>(kUntouched), size_of(number));
  }

  // A write is settled when it was both checked and reported.
  void settle(std::uint32_t number) {
    if (half_settled_.erase(number) > 0) {
      slot_free_[number % kSlots] = true;
    } else {
      half_settled_.insert(number);
    }
  }

  Side& from_;
  Side& to_;
  Connected peers_;
  std::uint32_t count_;
  std::uint32_t next_ = 0;
  std::size_t reported_ = 0;
  std::set<std::uint32_t> arrived_;
  std::set<std::uint32_t> half_settled_;
  std::vector<bool> slot_free_;
  bool good_ = true;
};

TEST_P(FabricSuite, NamesItself) {
  const Side side = make_side(4096);
  const FabricInfo info = side.fabric->describe();
  EXPECT_EQ(info.provider, GetParam().provider);
  EXPECT_EQ(info.address, side.fabric->address());
  EXPECT_FALSE(info.domain.empty());
  EXPECT_GE(info.write_queue, 64u);
  EXPECT_EQ(info.faults.empty(), GetParam().lossless());
}

TEST_P(FabricSuite, BothSidesLearnTheTokenOfTheirPeer) {
  Side a = make_side(4096), b = make_side(4096);
  const Token token = make_token(1);
  const Connected peers = connect(a, b, token);
  EXPECT_EQ(a.up.at(peers.near), token);
  EXPECT_EQ(b.up.at(peers.far), token);
  EXPECT_EQ(b.fabric->describe().refused_peers, 0u);
}

TEST_P(FabricSuite, WrongTokenIsRefusedAndTheRightOneStillWorks) {
  Side a = make_side(4096), b = make_side(4096);
  const auto far = b.fabric->expect_peer(make_token(1), soon());
  const auto near = a.fabric->open_peer(b.fabric->address(), make_token(2), soon(milliseconds(400)));
  ASSERT_TRUE(far && near);
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.down.contains(*near); }));
  EXPECT_TRUE(b.up.empty());
  EXPECT_TRUE(a.up.empty());
  EXPECT_EQ(b.fabric->describe().refused_peers, 1u);
  const auto again = a.fabric->open_peer(b.fabric->address(), make_token(1), soon());
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.up.contains(*again) && b.up.contains(*far); }));
}

TEST_P(FabricSuite, TokenWorksOnce) {
  Side a = make_side(4096), b = make_side(4096);
  const Connected first = connect(a, b, make_token(1));
  const auto second = a.fabric->open_peer(b.fabric->address(), make_token(1), soon(milliseconds(400)));
  ASSERT_TRUE(second);
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.down.contains(*second); }));
  EXPECT_FALSE(a.down.contains(first.near));
  EXPECT_EQ(b.fabric->describe().refused_peers, 1u);
}

TEST_P(FabricSuite, ExpectedPeerThatDoesNotComeIsReported) {
  Side a = make_side(4096);
  const auto peer = a.fabric->expect_peer(make_token(1), soon(milliseconds(20)));
  ASSERT_TRUE(peer);
  ASSERT_TRUE(poll_until({&a}, [&] { return a.down.contains(*peer); }));
  EXPECT_EQ(a.down.at(*peer).code(), Code::timeout);
}

TEST_P(FabricSuite, ZeroAndRepeatedTokensAreRefused) {
  Side a = make_side(4096);
  EXPECT_EQ(a.fabric->expect_peer(Token{}, soon()).error().code(), Code::invalid_argument);
  ASSERT_TRUE(a.fabric->expect_peer(make_token(1), soon()));
  EXPECT_EQ(a.fabric->expect_peer(make_token(1), soon()).error().code(), Code::invalid_usage);
}

TEST_P(FabricSuite, TenThousandWritesArriveByteExact) {
  Side a = make_side(), b = make_side();
  Stream stream(a, b, connect(a, b, make_token(1)), 10'000);
  ASSERT_TRUE(poll_until(
      {&a, &b},
      [&] {
        stream.step(!GetParam().lossless());
        return stream.finished() || !stream.good();
      },
      milliseconds(20'000)));
  EXPECT_TRUE(stream.good());
}

// Each side writes from one half of its memory into the same half of the other's.
TEST_P(FabricSuite, TrafficInBothDirections) {
  constexpr std::size_t kBytes = 4096, kWindow = 16, kHalf = kWindow * kBytes;
  constexpr std::uint32_t kCount = 2000;
  Side a = make_side(2 * kHalf), b = make_side(2 * kHalf);
  const Connected peers = connect(a, b, make_token(1));
  struct Direction {
    Side& from;
    Side& to;
    PeerId peer;
    std::size_t half;
    std::uint32_t sent = 0;
    std::set<std::uint32_t> seen{};
  };
  Direction directions[] = {{a, b, peers.near, 0}, {b, a, peers.far, kHalf}};
  const auto step = [&](Direction& way) {
    for (; !way.to.immediates.empty(); way.to.immediates.pop_front()) way.seen.insert(way.to.immediates.front().second);
    if (way.sent == kCount || way.sent - way.from.done.size() >= kWindow) return;
    const std::size_t offset = way.half + way.sent % kWindow * kBytes;
    const auto state = way.from.fabric->post_write({.peer = way.peer,
                                                    .local = way.from.region,
                                                    .local_offset = offset,
                                                    .bytes = kBytes,
                                                    .remote = way.to.key,
                                                    .remote_offset = offset,
                                                    .immediate = way.sent,
                                                    .context = way.sent});
    ASSERT_TRUE(state) << state.error().to_string();
    if (*state == PostState::posted) ++way.sent;
  };
  ASSERT_TRUE(poll_until(
      {&a, &b},
      [&] {
        for (Direction& way : directions) step(way);
        return directions[0].seen.size() == kCount && directions[1].seen.size() == kCount && a.done.size() == kCount &&
               b.done.size() == kCount;
      },
      milliseconds(15'000)));
  EXPECT_TRUE(a.failed.empty());
  EXPECT_TRUE(b.failed.empty());
}

TEST_P(FabricSuite, BadWritesAreRefusedAndHarmNobody) {
  Side a = make_side(4096), b = make_side(4096);
  const Connected peers = connect(a, b, make_token(1));
  Write write{.peer = peers.near, .local = a.region, .local_offset = 0, .bytes = 4097, .remote = b.key};
  const auto post_alone = [&](const Write& bad) {
    auto state = a.fabric->post_write(bad);
    return state ? Code::ok : state.error().code();
  };
  EXPECT_EQ(post_alone(write), Code::invalid_argument);
  write.bytes = 2;
  write.local_offset = UINT64_MAX;
  EXPECT_EQ(post_alone(write), Code::invalid_argument);
  write.local_offset = 0;
  write.local = RegionId{77};
  EXPECT_EQ(post_alone(write), Code::invalid_argument);
  write.local = a.region;
  write.peer = PeerId{999};
  EXPECT_EQ(post_alone(write), Code::peer_lost);
  write.peer = peers.near;
  ASSERT_TRUE(post(a, b, write).ok());
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return !b.immediates.empty() && a.done.size() == 1; }));
}

TEST_P(FabricSuite, DeregisterWaitsForOwnWritesOnly) {
  Side a = make_side(1 << 20), b = make_side(1 << 20);
  const Connected peers = connect(a, b, make_token(1));
  for (std::uint64_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(
        post(a, b, {.peer = peers.near, .local = a.region, .bytes = 1 << 20, .remote = b.key, .context = i}).ok());
  }
  EXPECT_EQ(a.fabric->deregister(a.region).error().code(), Code::invalid_usage);
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.done.size() == 8 && b.immediates.size() >= 8; }));
  EXPECT_TRUE(a.fabric->deregister(a.region));
  EXPECT_EQ(a.fabric->deregister(a.region).error().code(), Code::invalid_argument);
  EXPECT_TRUE(b.fabric->deregister(b.region));
}

TEST_P(FabricSuite, KeysOfTwoRegionsDiffer) {
  Side a = make_side(4096);
  std::vector<std::byte> more(4096);
  const auto region = a.fabric->register_memory(more.data(), more.size());
  ASSERT_TRUE(region);
  EXPECT_NE(a.fabric->remote_key(*region)->key, a.key.key);
  EXPECT_EQ(a.fabric->register_memory(more.data(), 0).error().code(), Code::invalid_argument);
  EXPECT_TRUE(a.fabric->deregister(*region));
}

TEST_P(FabricSuite, SleepingSideIsWokenByAWrite) {
  Side a = make_side(4096), b = make_side(4096);
  const Connected peers = connect(a, b, make_token(1));
  ASSERT_GE(b.fabric->wait_fd(), 0);
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.fabric->arm(); }));
  pollfd sleeper{b.fabric->wait_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&sleeper, 1, 0), 0);
  ASSERT_TRUE(post(a, a, {.peer = peers.near, .local = a.region, .bytes = 64, .remote = b.key, .immediate = 5}).ok());
  // Only the writing side moves: what it does must be enough to wake the other.
  ASSERT_TRUE(poll_until({&a}, [&] { return ::poll(&sleeper, 1, 0) == 1; }));
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return !b.immediates.empty(); }));
  EXPECT_EQ(b.immediates.front().second, 5u);
}

INSTANTIATE_TEST_SUITE_P(Backends, FabricSuite, testing::ValuesIn(all_backends()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace railhead::fabric::test
