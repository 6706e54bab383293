#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "client/arena.hpp"

namespace railhead::client {
namespace {

using ipc::SegmentKind;

class ArenaTest : public testing::Test {
 protected:
  struct Told {
    SegmentKind kind;
    std::uint8_t id;
    std::uint64_t bytes;
  };
  std::vector<Told> told_;
  Result<void> answer_;
  Arena arena_{[this](SegmentKind kind, std::uint8_t id, const ipc::Segment& segment) {
    told_.push_back({kind, id, segment.bytes()});
    return answer_;
  }};

  Block take(std::uint64_t bytes, SegmentKind kind = SegmentKind::receive) {
    auto block = arena_.allocate(kind, bytes);
    EXPECT_TRUE(block) << block.error().message();
    return *block;
  }
};

TEST_F(ArenaTest, BlocksAreAlignedApartAndOfTheirKind) {
  std::vector<Block> blocks;
  for (std::uint64_t bytes = 0; bytes < 300; bytes += 7) {
    blocks.push_back(take(bytes, bytes % 2 == 0 ? SegmentKind::receive : SegmentKind::combine));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().data) % 64, 0U);
    EXPECT_GE(blocks.back().bytes, bytes);
    std::memset(blocks.back().data, static_cast<int>(blocks.size()), blocks.back().bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::uint64_t b = 0; b < blocks[i].bytes; ++b) {
      ASSERT_EQ(std::to_integer<std::size_t>(blocks[i].data[b]), i + 1) << i;
    }
    EXPECT_EQ(arena_.resolve(blocks[i].ref, blocks[i].bytes), blocks[i].data);
  }
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_NE(told_[0].kind, told_[1].kind);
  EXPECT_NE(told_[0].id, told_[1].id);
}

TEST_F(ArenaTest, TheMostRecentlyFreedBlockIsUsedFirst) {
  const Block a = take(4096);
  const Block gap = take(64);
  const Block b = take(4096);
  const Block gap2 = take(64);
  arena_.release(b);
  arena_.release(a);
  EXPECT_EQ(take(4096).data, a.data);
  EXPECT_EQ(take(4096).data, b.data);
  arena_.release(gap);
  arena_.release(gap2);
}

TEST_F(ArenaTest, NeighboursMergeSoThatTheWholeComesBack) {
  ASSERT_TRUE(arena_.reserve(SegmentKind::receive, 1 << 20));
  const std::uint64_t whole = arena_.bytes(SegmentKind::receive);
  std::vector<Block> blocks;
  for (std::uint64_t taken = 0; taken < whole; taken += 1 << 16) blocks.push_back(take(1 << 16));
  ASSERT_EQ(told_.size(), 1U);
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(3));
  for (const Block& block : blocks) arena_.release(block);
  EXPECT_EQ(take(whole).bytes, whole);
  EXPECT_EQ(told_.size(), 1U) << "no further segment was needed";
}

TEST_F(ArenaTest, TrimGivesTheTailBack) {
  Block block = take(1 << 20);
  arena_.trim(block, 100);
  EXPECT_EQ(block.bytes, 128U);
  const Block next = take(1000);
  EXPECT_EQ(next.data, block.data + 128);
  arena_.trim(block, 5000);  // never grows
  EXPECT_EQ(block.bytes, 128U);
  arena_.release(block);
  arena_.release(next);
}

TEST_F(ArenaTest, OnlyTheStartOfWhatWasHandedOutIsTakenBack) {
  const auto block = arena_.hand_out(SegmentKind::receive, 256);
  ASSERT_TRUE(block);
  const Block own = take(256);
  int outside = 0;
  EXPECT_FALSE(arena_.take_back(block->data + 64));
  EXPECT_FALSE(arena_.take_back(&outside));
  EXPECT_FALSE(arena_.take_back(own.data)) << "what the library keeps for itself, like the rows of a dispatch";
  EXPECT_TRUE(arena_.take_back(block->data));
  const auto twice = arena_.take_back(block->data);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code(), Code::invalid_argument);
}

TEST_F(ArenaTest, FindKnowsWhatLiesInsideEntirely) {
  const Block block = take(256);
  ipc::SpanRef ref;
  EXPECT_TRUE(arena_.find(block.data + 8, 100, ref));
  EXPECT_EQ(arena_.resolve(ref, 100), block.data + 8);
  const std::uint64_t whole = arena_.bytes(SegmentKind::receive);
  EXPECT_FALSE(arena_.find(block.data, whole + 1, ref));
  int outside = 0;
  EXPECT_FALSE(arena_.find(&outside, sizeof(outside), ref));
}

// Looked up without a lock: for ThreadSanitizer, and for a segment that counts before it is filled in.
TEST_F(ArenaTest, FindAndResolveWhileAnotherThreadGrowsIt) {
  std::atomic<const Block*> newest{nullptr};
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      const Block* const block = newest;
      ipc::SpanRef ref;
      if (block == nullptr) continue;
      EXPECT_TRUE(arena_.find_output(block->data, block->bytes, ref));
      EXPECT_EQ(arena_.resolve(block->ref, block->bytes), block->data);
      EXPECT_GE(arena_.bytes(SegmentKind::receive), block->bytes);
      EXPECT_EQ(arena_.resolve(ipc::SpanRef::make(ipc::kMaxSegments - 1, 0), 1), nullptr);
    }
  });
  std::deque<Block> blocks;
  for (int i = 0; i < 40; ++i) newest = &blocks.emplace_back(take(4U << 20));
  done = true;
  reader.join();
  EXPECT_GT(told_.size(), 5U);
}

TEST_F(ArenaTest, ReferencesThatLeadOutsideResolveToNothing) {
  const Block block = take(256);
  const std::uint64_t whole = arena_.bytes(SegmentKind::receive);
  EXPECT_NE(arena_.resolve(ipc::SpanRef::make(0, whole - 8), 8), nullptr);
  EXPECT_EQ(arena_.resolve(ipc::SpanRef::make(0, whole - 8), 9), nullptr);
  EXPECT_EQ(arena_.resolve(ipc::SpanRef::make(0, 8), UINT64_MAX), nullptr);
  EXPECT_EQ(arena_.resolve(ipc::SpanRef::make(1, 0), 1), nullptr);
  arena_.release(block);
}

TEST_F(ArenaTest, ASegmentThatTheDaemonRefusesIsNotHandedOut) {
  answer_ = fail(Code::daemon_lost, "gone");
  const auto refused = arena_.allocate(SegmentKind::receive, 64);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::daemon_lost);
  EXPECT_EQ(arena_.bytes(SegmentKind::receive), 0U);
  answer_ = {};
  EXPECT_NE(take(64).data, nullptr);
  EXPECT_EQ(told_.back().id, 0);
}

TEST_F(ArenaTest, MoreThanThereIsIsAnErrorWithBothNumbers) {
  const auto refused = arena_.allocate(SegmentKind::receive, std::uint64_t{1} << 50);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::out_of_memory);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("free"));
}

TEST_F(ArenaTest, ANumberBeyondRoundingIsRefusedToo) {
  EXPECT_FALSE(arena_.allocate(SegmentKind::receive, UINT64_MAX));
  EXPECT_FALSE(arena_.allocate(SegmentKind::receive, UINT64_MAX - 64));
}

}  // namespace
}  // namespace railhead::client
