// What follows from the shape of a group alone.
#include "ipc/layout/shape.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace railhead::ipc
