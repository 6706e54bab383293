// What follows from the shape of a group alone.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "ipc/layout/rail_words.hpp"
#include "ipc/layout/rings.hpp"
#include "ipc/layout/shape.hpp"
#include "ipc/wire.hpp"

namespace railhead::ipc {
namespace {

GroupShape shape_of(const std::vector<std::uint16_t>& domain_of_rank, std::uint32_t channels = 1,
                    std::uint32_t ring_slots = 0) {
  GroupParams params;
  params.ranks = static_cast<std::uint32_t>(domain_of_rank.size());
  params.experts = params.ranks;
  params.hidden = 16;
  params.topk = 1;
  params.channels = channels;
  params.ring_slots = ring_slots;
  EXPECT_TRUE(validate(params));
  return {params, GroupMap{1, domain_of_rank}};
}

TEST(GroupShape, FewerSlotsWhereMoreRingsShareAHost) {
  EXPECT_EQ(shape_of({0}).params().ring_slots, 4U);  // no rings at all
  EXPECT_EQ(shape_of({0, 1}).params().ring_slots, 4U);
  EXPECT_EQ(shape_of({0, 0, 0, 0, 1, 1, 1, 1}).params().ring_slots, 4U);
  EXPECT_EQ(shape_of({0, 0, 0, 1, 1, 1}, 2).params().ring_slots, 2U);
  EXPECT_EQ(shape_of({0, 0, 0, 0, 0, 1}).params().ring_slots, 3U);  // the fuller host counts
  EXPECT_EQ(shape_of({0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}).params().ring_slots, 2U);
}

TEST(GroupShape, SlotsThatWereAskedForStay) {
  EXPECT_EQ(shape_of({0, 1}, 1, 1).params().ring_slots, 1U);
  EXPECT_EQ(shape_of({0, 1}, 1, 256).params().ring_slots, 256U);
}

TEST(GroupShape, MoreRingsThanARequestCanNameAreALimit) {
  std::vector<std::uint16_t> hosts(514);
  std::iota(hosts.begin(), hosts.end(), 0);
  EXPECT_FALSE(check_rings(shape_of(hosts, 64), 3));  // 513 others, 64 channels, two directions
  const std::string said = check_rings(shape_of(hosts, 64), 3).error().message();
  EXPECT_NE(said.find("rank 3 would have 65664 rings to the other 513 hosts"), std::string::npos) << said;
  EXPECT_TRUE(check_rings(shape_of(hosts, 63), 3));
  EXPECT_TRUE(check_rings(shape_of({0}), 0));
  // With the largest number of slots there is a ring of requests still; that it is full is for both sides to bear.
  EXPECT_EQ(RailWordsLayout(shape_of(hosts, 63, 256), 3).submit_capacity(), kMaxRingCapacity);
}

GroupShape chunks_of(std::uint32_t bytes) {
  GroupParams params;
  params.ranks = 2;
  params.experts = 2;
  params.hidden = 7168;
  params.topk = 8;
  params.chunk_bytes = bytes;
  return {params, GroupMap{1, {0, 1}}};
}

TEST(GroupShape, ChunksFillTheirSlotUnlessTheirSizeWasAskedFor) {
  const GroupShape usual = chunks_of(0);
  EXPECT_EQ(usual.chunk_record_bytes(), usual.slot_bytes() - sizeof(ChunkHeader));
  EXPECT_EQ(chunks_of(60'000).chunk_record_bytes() / usual.dispatch_record_bytes(2),
            60'000 / usual.dispatch_record_bytes(2));
}

// The slot fits one fp32 record all the same, and so four of bytes.
TEST(GroupShape, ChunksOfOneByteHoldOneRecordOfAnyElement) {
  const GroupShape shape = chunks_of(1);
  EXPECT_GE(shape.slot_bytes(), sizeof(ChunkHeader) + shape.dispatch_record_bytes(4));
  for (const std::uint32_t element : {1U, 2U, 4U}) {
    EXPECT_EQ(shape.chunk_record_bytes() / shape.dispatch_record_bytes(element), 0U) << element;  // one is the least
  }
}

}  // namespace
}  // namespace railhead::ipc
