#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "kernels/plan/plan.hpp"
#include "tests/unit/kernels/routings.hpp"

namespace railhead::kernels {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Routing narrow_routing(const std::vector<int32_t>& ids, uint32_t top_k) {
  const auto tokens = static_cast<uint32_t>(ids.size() / top_k);
  return {.ids = ids.data(), .id_pitch = top_k, .tokens = tokens, .top_k = top_k, .id_type = IdType::int32};
}

// The plan once more, from maps and sets, token by token.
class Reference {
 public:
  Reference(const test::RoutingData& data, const ExpertMap& map, uint32_t channels) : map_(map), channels_(channels) {
    for (uint32_t channel = 0; channel < channels; ++channel) {
      const uint64_t tokens = data.routing.tokens;
      for (uint64_t t = channel * tokens / channels; t < (channel + 1) * tokens / channels; ++t) {
        add_token(data, static_cast<uint32_t>(t), channel);
      }
    }
  }

  void expect_equal(const Plan& plan) const {
    EXPECT_EQ(plan.tokens(), tokens_.size());
    EXPECT_EQ(plan.channels(), channels_);
    for (uint32_t t = 0; t < tokens_.size(); ++t) expect_placements(tokens_[t], plan.placements(t));
    for (uint32_t domain = 0; domain < map_.domains(); ++domain) expect_domain(plan, static_cast<uint16_t>(domain));
  }

 private:
  using Key = std::tuple<uint16_t, uint16_t, uint32_t>;  // domain, local rank, expert id

  void add_token(const test::RoutingData& data, uint32_t token, uint32_t channel) {
    std::map<Key, Placement> rows;
    for (uint32_t slot = 0; slot < data.routing.top_k; ++slot) {
      if (data.id(token, slot) < 0) continue;
      const auto expert = static_cast<uint32_t>(data.id(token, slot));
      const ExpertHome& home = map_.home(expert);
      const auto [row, is_new] = rows.try_emplace(Key{home.domain, home.local_rank, expert});
      if (is_new) {
        row->second = {.domain = home.domain,
                       .local_rank = home.local_rank,
                       .expert = home.dense,
                       .slot = static_cast<uint16_t>(slot),
                       .expert_ordinal = 0,
                       .rank_ordinal = 0,
                       .weight = data.weight(token, slot)};
      } else {
        row->second.weight += data.weight(token, slot);
      }
    }
    std::set<uint32_t> ranks;
    std::set<uint16_t> domains;
    for (auto& [key, row] : rows) {
      const uint32_t expert = std::get<2>(key);
      const uint32_t rank = map_.home(expert).rank;
      row.expert_ordinal = expert_rows_[expert]++;
      if (ranks.insert(rank).second) ++rank_rows_[rank];
      row.rank_ordinal = rank_rows_[rank] - 1;
      if (domains.insert(row.domain).second) touching_[{row.domain, channel}].push_back(token);
    }
    tokens_.emplace_back();
    for (const auto& [key, row] : rows) tokens_.back().push_back(row);
  }

  static void expect_placements(const std::vector<Placement>& expected, std::span<const Placement> got) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].domain, expected[i].domain);
      EXPECT_EQ(got[i].local_rank, expected[i].local_rank);
      EXPECT_EQ(got[i].expert, expected[i].expert);
      EXPECT_EQ(got[i].slot, expected[i].slot);
      EXPECT_EQ(got[i].expert_ordinal, expected[i].expert_ordinal);
      EXPECT_EQ(got[i].rank_ordinal, expected[i].rank_ordinal);
      EXPECT_EQ(got[i].weight, expected[i].weight);
    }
  }

  void expect_domain(const Plan& plan, uint16_t domain) const {
    std::vector<uint32_t> slice;
    for (const uint32_t expert : map_.experts_in(domain)) slice.push_back(count(expert_rows_, expert));
    for (const uint32_t rank : map_.ranks_in(domain)) slice.push_back(count(rank_rows_, rank));
    for (uint32_t channel = 0; channel < channels_; ++channel) {
      const auto found = touching_.find({domain, channel});
      const std::vector<uint32_t> tokens = found == touching_.end() ? std::vector<uint32_t>{} : found->second;
      slice.push_back(static_cast<uint32_t>(tokens.size()));
      expect_runs(plan, domain, plan.runs(domain, channel), tokens);
    }
    EXPECT_THAT(plan.slice(domain), testing::ElementsAreArray(slice));
    EXPECT_EQ(slice_shape(map_, domain, channels_).words(), slice.size());
  }

  static void expect_runs(const Plan& plan, uint16_t domain, std::span<const Run> runs,
                          const std::vector<uint32_t>& tokens) {
    ASSERT_EQ(runs.size(), tokens.size());
    for (size_t i = 0; i < runs.size(); ++i) {
      EXPECT_EQ(runs[i].token, tokens[i]);
      const std::span<const Placement> run = plan.placements(runs[i]);
      const std::span<const Placement> all = plan.placements(tokens[i]);
      ASSERT_GE(run.data(), all.data());
      ASSERT_LE(run.data() + run.size(), all.data() + all.size());
      size_t of_domain = 0;
      for (const Placement& row : all) of_domain += row.domain == domain ? 1 : 0;
      EXPECT_EQ(run.size(), of_domain);
      EXPECT_EQ(run.front().domain, domain);
    }
  }

  static uint32_t count(const std::map<uint32_t, uint32_t>& counts, uint32_t key) {
    const auto found = counts.find(key);
    return found == counts.end() ? 0 : found->second;
  }

  const ExpertMap& map_;
  uint32_t channels_;
  std::vector<std::vector<Placement>> tokens_;
  std::map<uint32_t, uint32_t> expert_rows_;
  std::map<uint32_t, uint32_t> rank_rows_;
  std::map<std::pair<uint16_t, uint32_t>, std::vector<uint32_t>> touching_;
};

TEST(Plan, NumbersRowsOfASmallExample) {
  const ExpertMap map = ExpertMap::create(4, {0, 1}).value();  // experts 0, 1 on rank 0, experts 2, 3 on rank 1
  const std::vector<int32_t> ids = {3, 0, 1, 0, 2, 3};         // three tokens, top-2
  Plan plan;
  ASSERT_TRUE(plan.build(narrow_routing(ids, 2), map, 2).ok());
  ASSERT_EQ(plan.placement_count(), 6u);
  EXPECT_THAT(plan.slice(0), ElementsAre(2, 1, 2, 1, 1));  // experts 0 and 1, rank 0, channels 0 and 1
  EXPECT_THAT(plan.slice(1), ElementsAre(1, 2, 2, 1, 1));
  const Placement& row = plan.placements(2)[1];  // token 2 to expert 3
  EXPECT_EQ(row.expert, 1);
  EXPECT_EQ(row.slot, 1);
  EXPECT_EQ(row.expert_ordinal, 1u);
  EXPECT_EQ(row.rank_ordinal, 1u);
  EXPECT_EQ(row.weight, 1.0F);
}

TEST(Plan, RepeatedIdIsOneRowWithWeightsAddedInSlotOrder) {
  const ExpertMap map = ExpertMap::create(3, {0}).value();
  const std::vector<int32_t> ids = {2, -1, 1, 2, 2};
  const std::vector<float> weights = {1e8F, 7, 5, 1, -1e8F};  // (1e8 + 1) - 1e8 == 0 in this order alone
  Routing routing = narrow_routing(ids, 5);
  routing.weights = weights.data();
  routing.weight_pitch = 5;
  Plan plan;
  ASSERT_TRUE(plan.build(routing, map, 1).ok());
  ASSERT_EQ(plan.placements(0).size(), 2u);
  EXPECT_EQ(plan.placements(0)[0].weight, 5.0F);
  EXPECT_EQ(plan.placements(0)[1].weight, 0.0F);
  EXPECT_EQ(plan.placements(0)[1].slot, 0);
  EXPECT_THAT(plan.slice(0), ElementsAre(0, 1, 1, 1, 1));
}

TEST(Plan, NoTokensNeedNoMemory) {
  const ExpertMap map = ExpertMap::create(3, {0, 1}).value();
  Plan plan;
  ASSERT_TRUE(plan.build({.top_k = 8}, map, 2).ok());
  EXPECT_EQ(plan.tokens(), 0u);
  EXPECT_EQ(plan.placement_count(), 0u);
  EXPECT_THAT(plan.slice(0), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(plan.runs(1, 1), IsEmpty());
}

TEST(Plan, ChannelsSplitLargeTokenCountsWithoutOverflow) {
  constexpr uint32_t kMost = 2147483647;
  EXPECT_EQ(channel_begin(kMost, 5, 0), 0u);
  EXPECT_EQ(channel_begin(kMost, 5, 4), 1717986917u);
  EXPECT_EQ(channel_begin(kMost, 5, 5), kMost);
  EXPECT_EQ(channel_begin(3, 5, 4), 2u);
}

TEST(Plan, BadIdNamesRowSlotValueAndLimitAndLeavesThePlan) {
  const ExpertMap map = ExpertMap::create(4, {0}).value();
  const std::vector<int32_t> good = {0, 1, 2, 3};
  Plan plan;
  ASSERT_TRUE(plan.build(narrow_routing(good, 2), map, 1).ok());
  for (const int32_t bad : {4, -2, 2147483647}) {
    const std::vector<int32_t> ids = {3, 3, 3, 3, 3, bad};
    const Status status = plan.build(narrow_routing(ids, 2), map, 3);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_THAT(status.message(), HasSubstr("row 2, slot 1"));
    EXPECT_THAT(status.message(), HasSubstr(std::to_string(bad)));
    EXPECT_THAT(status.message(), HasSubstr("0..3"));
  }
  EXPECT_EQ(plan.tokens(), 2u);
  EXPECT_EQ(plan.channels(), 1u);
  EXPECT_THAT(plan.slice(0), ElementsAre(1, 1, 1, 1, 2, 2));
}

TEST(Plan, Id64IsNotTruncated) {
  const ExpertMap map = ExpertMap::create(4, {0}).value();
  const std::vector<int64_t> ids = {int64_t{1} << 32};
  Plan plan;
  const Status status = plan.build({.ids = ids.data(), .id_pitch = 1, .tokens = 1, .top_k = 1}, map, 1);
  EXPECT_THAT(status.message(), HasSubstr("4294967296"));
}

TEST(Plan, RefusesImpossibleShapes) {
  const ExpertMap map = ExpertMap::create(4, {0}).value();
  const std::vector<int32_t> ids = {0, 1};
  const std::vector<float> weights = {1, 1};
  const Routing good = narrow_routing(ids, 2);
  Plan plan;
  const auto refusal = [&](auto change, uint32_t channels = 1) {
    Routing routing = good;
    change(routing);
    const Status status = plan.build(routing, map, channels);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return status.message();
  };
  EXPECT_THAT(refusal([](Routing& r) { r.ids = nullptr; }), HasSubstr("null"));
  EXPECT_THAT(refusal([](Routing& r) { r.id_pitch = 1; }), HasSubstr("pitch of the expert ids is 1"));
  EXPECT_THAT(refusal([](Routing& r) { r.top_k = 0; }), HasSubstr("top-k is 0"));
  EXPECT_THAT(refusal([](Routing& r) { r.top_k = 65536; }), HasSubstr("top-k is 65536"));
  EXPECT_THAT(refusal([](Routing& r) { r.tokens = 1u << 31; }), HasSubstr("2147483648"));
  EXPECT_THAT(refusal([](Routing&) {}, 0), HasSubstr("channels is 0"));
  EXPECT_THAT(refusal([&](Routing& r) { r.weights = weights.data(); }), HasSubstr("pitch of the weights is 0"));
}

TEST(Plan, RandomRoutingsMatchTheReferenceAndStorageIsReusable) {
  SCOPED_TRACE(test::seed_text());
  std::mt19937_64 random(test::seed());
  Plan plan;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const ExpertMap map = test::random_map(random);
    const uint32_t tokens = test::pick(random, 0, 3) == 0 ? 0 : test::pick(random, 1, 150);
    const uint32_t channels = test::pick(random, 1, 5);
    test::RoutingData data;
    test::random_routing(random, map.experts(), tokens, data);
    const Status status = plan.build(data.routing, map, channels);
    ASSERT_TRUE(status.ok()) << status.to_string();
    Reference(data, map, channels).expect_equal(plan);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace railhead::kernels
