#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "client/arguments.hpp"
#include "railhead/railhead.hpp"

namespace railhead::client {
namespace {

using testing::HasSubstr;

GroupContext context() {
  ipc::GroupParams params;
  params.ranks = 1;
  params.experts = 4;
  params.hidden = 16;
  params.topk = 2;
  params.side_bytes = 8;
  ipc::GroupShape shape(params, ipc::GroupMap{1, {0}});
  auto experts = kernels::ExpertMap::create(4, std::vector<std::uint16_t>{0}, shape.expert_rank());
  return {std::move(shape), std::move(*experts), {}, 0, 0, 0, {}, nullptr, nullptr, nullptr, {}, HandleList(8)};
}

std::string text(const Status& status) {
  EXPECT_EQ(status.code(), Code::invalid_argument);
  return status.message();
}

TEST(ReadStruct, TakesSmallerAndLargerStructs) {
  auto config = make<rh_group_config>();
  config.ranks = 3;
  config.combine_bytes = 77;
  config.size = offsetof(rh_group_config, combine_bytes);
  auto read = read_struct(&config, "rh_group_config");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ranks, 3U);
  EXPECT_EQ(read->combine_bytes, 0U) << "beyond the caller's size";
  struct Newer {
    rh_group_config known;
    std::uint64_t later;
  } newer{make<rh_group_config>(), 0};
  newer.known.size = sizeof(newer);
  EXPECT_TRUE(read_struct(&newer.known, "rh_group_config"));
  newer.later = 1;
  const auto refused = read_struct(&newer.known, "rh_group_config");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::unsupported);
}

TEST(ReadStruct, NullAndSizeZeroAreNamed) {
  EXPECT_THAT(text(read_struct<rh_combine_args>(nullptr, "rh_combine_args").error()),
              HasSubstr("rh_combine_args is NULL"));
  const rh_combine_args zero{};
  EXPECT_THAT(text(read_struct(&zero, "rh_combine_args").error()), HasSubstr("size is 0"));
}

TEST(GroupParamsOf, DefaultsAndLimits) {
  auto config = make<rh_group_config>();
  config.ranks = 2;
  config.rank = 1;
  config.experts = 4;
  config.hidden = 16;
  config.topk = 2;
  auto good = group_params(config);
  ASSERT_TRUE(good);
  EXPECT_EQ(good->channels, 1U);
  EXPECT_EQ(good->depth, 2U);
  EXPECT_EQ(good->ring_slots, 0U);
  config.rank = 2;
  EXPECT_THAT(text(group_params(config).error()), HasSubstr("rank is 2, ranks is 2"));
  config.rank = 0;
  const std::uint32_t map[] = {0, 1, 2, 0};
  config.expert_to_rank = map;
  EXPECT_FALSE(group_params(config));
  config.expert_to_rank = nullptr;
  config.hidden = 0;
  EXPECT_THAT(text(group_params(config).error()), HasSubstr("hidden is 0"));
}

// A chunk a little longer than two TCP segments travels in three.
TEST(GroupParamsOf, DefaultSlotsFillTwoSegments) {
  constexpr std::uint32_t kSegments = 2 * 45 * 1448;  // at an MTU of 1500
  constexpr std::uint32_t kFabricHeader = 48;
  for (const std::uint32_t hidden : {1024U, 2048U, 4096U, 5120U, 7168U}) {
    ipc::GroupParams params;
    params.ranks = 1;
    params.experts = 1;
    params.hidden = hidden;
    params.topk = 8;
    const ipc::GroupShape shape(params, ipc::GroupMap{1, {0}});
    EXPECT_LE(shape.slot_bytes() + kFabricHeader, kSegments) << hidden;
    EXPECT_GT(shape.slot_bytes() + shape.dispatch_record_bytes(2), 125'000U) << hidden;
  }
}

class DispatchArguments : public testing::Test {
 protected:
  DispatchArguments() {
    args_.x = x_.data();
    args_.type = RH_BF16;
    args_.tokens = 2;
    args_.ids = ids_.data();
  }
  std::string refused() {
    auto input = dispatch_input(group_, args_, nullptr);
    EXPECT_FALSE(input);
    return input ? "accepted" : text(input.error());
  }
  GroupContext group_ = context();
  std::vector<std::byte> x_ = std::vector<std::byte>(4096);
  std::vector<std::int64_t> ids_ = {0, 1, 2, 3};
  rh_dispatch_args args_ = make<rh_dispatch_args>();
};

TEST_F(DispatchArguments, DenseDefaults) {
  auto input = dispatch_input(group_, args_, nullptr);
  ASSERT_TRUE(input) << input.error().message();
  EXPECT_EQ(input->request.data.x_pitch, 32U);
  EXPECT_EQ(input->routing.top_k, 2U);
  EXPECT_EQ(input->align, 1U);
}

TEST_F(DispatchArguments, EveryBadFieldIsNamedWithValueAndLimit) {
  const auto with = [this](auto change) {
    const rh_dispatch_args before = args_;
    change(args_);
    std::string out = refused();
    args_ = before;
    return out;
  };
  EXPECT_THAT(with([](auto& a) { a.topk = 3; }), HasSubstr("topk is 3, the group was made with 2"));
  EXPECT_THAT(with([](auto& a) { a.tokens = 0x80000000U; }), HasSubstr("tokens is 2147483648"));
  EXPECT_THAT(with([](auto& a) { a.ids = nullptr; }), HasSubstr("ids is NULL"));
  EXPECT_THAT(with([](auto& a) { a.align = 4; }), HasSubstr("align is 4 with layout rank"));
  EXPECT_THAT(with([](auto& a) {
                a.layout = RH_LAYOUT_EXPERT;
                a.align = 70000;
              }),
              HasSubstr("align is 70000"));
  EXPECT_THAT(with([](auto& a) { a.side_bytes = 9; }), HasSubstr("side_bytes is 9, the group was made with 8"));
  EXPECT_THAT(with([](auto& a) { a.side_bytes = 8; }), HasSubstr("side is NULL"));
  EXPECT_THAT(with([](auto& a) { a.x = nullptr; }), HasSubstr("x is NULL with tokens 2"));
  EXPECT_THAT(with([](auto& a) { a.x_pitch = 31; }), HasSubstr("x_pitch is 31, a row has 32 bytes"));
}

#ifndef __SANITIZE_ADDRESS__  // UBSan, which comes with it, stops at the load of such a value
// What C can put into an enum.
template <class E>
void put(E& field, int value) {
  std::memcpy(&field, &value, sizeof(field));
}

TEST_F(DispatchArguments, NumbersBeyondTheEnumsAreNamed) {
  put(args_.id_type, 9);
  EXPECT_THAT(refused(), HasSubstr("id_type is 9"));
  args_.id_type = RH_INT64;
  put(args_.layout, 5);
  EXPECT_THAT(refused(), HasSubstr("layout is 5"));
  args_.layout = RH_LAYOUT_RANK;
  put(args_.type, 8);
  EXPECT_THAT(refused(), HasSubstr("type is 8"));
}
#endif

TEST_F(DispatchArguments, NoTokensNeedNoPointers) {
  args_.tokens = 0;
  args_.x = nullptr;
  args_.ids = nullptr;
  EXPECT_TRUE(dispatch_input(group_, args_, nullptr));
}

TEST(CombineArguments, EveryBadFieldIsNamed) {
  const GroupContext group = context();
  auto arena =
      std::make_shared<Arena>([](ipc::SegmentKind, std::uint8_t, const ipc::Segment&) { return Result<void>(); });
  Handle handle(arena, std::make_shared<SpareTables>());
  handle.tokens = 1;
  handle.route.op = 7;
  const std::int64_t ids[] = {0, 3};
  kernels::Routing routing;
  routing.ids = ids;
  routing.tokens = 1;
  routing.top_k = 2;
  routing.id_pitch = 2;
  ASSERT_TRUE(handle.route.plan.build(routing, group.experts, 1).ok());
  const std::vector<const std::uint32_t*> slices = {handle.route.plan.slice(0).data()};
  ASSERT_TRUE(handle.route.rank_bases.compute(group.experts, 0, slices).ok());
  float y[16];
  auto args = make<rh_combine_args>();
  args.type = RH_FP32;
  args.row_count = handle.row_count(0);
  args.rows = y;
  args.y = y;
  ASSERT_EQ(args.row_count, 1U);
  EXPECT_TRUE(combine_input(group, args, handle));
  const auto with = [&](auto change) {
    rh_combine_args bad = args;
    change(bad);
    auto input = combine_input(group, bad, handle);
    EXPECT_FALSE(input);
    return input ? std::string("accepted") : text(input.error());
  };
  EXPECT_THAT(with([](auto& a) { a.type = RH_U8; }), HasSubstr("combine sums"));
  EXPECT_THAT(with([](auto& a) { a.wire_type = RH_FP16; }), HasSubstr("wire_type is fp16"));
  EXPECT_THAT(with([](auto& a) { a.row_count = 2; }), HasSubstr("row_count is 2, the handle of op 7 has 1"));
  EXPECT_THAT(with([](auto& a) { a.rows = nullptr; }), HasSubstr("rows is NULL"));
  EXPECT_THAT(with([](auto& a) { a.y = nullptr; }), HasSubstr("y is NULL with tokens 1"));
  EXPECT_THAT(with([](auto& a) { a.weighted = 1; }), HasSubstr("layout rank"));
  EXPECT_THAT(with([](auto& a) { a.y_pitch = 63; }), HasSubstr("y_pitch is 63, a row has 64 bytes"));
}

}  // namespace
}  // namespace railhead::client
