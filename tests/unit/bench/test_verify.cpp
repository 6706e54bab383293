#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tools/ep-bench/rank/verify.hpp"

namespace railhead::bench {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kRank = 1;
constexpr std::uint64_t kBatch = 3;

// A right result of rank 1, made by the model with real rows: the verifier asks it in pieces and without rows.
class VerifierTest : public testing::TestWithParam<rh_layout> {
 protected:
  VerifierTest() {
    work_.domain_of_rank = {0, 0, 1};
    work_.tokens = {70, 90, 5};
    work_.hidden = 24;
    work_.experts = 7;
    work_.top_k = 3;
    work_.layout = GetParam();
    work_.align = by_rank() ? 1 : 4;
    routing_ = *open_routing(work_.routing, {work_.experts, work_.top_k, work_.seed});
    payload_.emplace(work_);
    verifier_.emplace(work_, *routing_, *payload_, kRank);
    make_right_result();
  }

  [[nodiscard]] bool by_rank() const { return work_.layout == RH_LAYOUT_RANK; }

  void make_right_result() {
    reference::Case test;
    test.domain_of_rank = work_.domain_of_rank;
    test.rank_of_expert = reference::default_rank_of_expert(work_.experts, 3);
    test.top_k = work_.top_k;
    test.hidden = work_.hidden;
    test.layout = by_rank() ? reference::Layout::rank : reference::Layout::expert;
    test.align = work_.align;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      Routing drawn = routing_->draw(rank, kBatch, work_.tokens[rank]);
      reference::RankInput input{work_.tokens[rank], {}, drawn.ids, drawn.weights, {}};
      input.x.resize(work_.tokens[rank] * work_.row_bytes());
      payload_->fill(rank, kBatch, input.x);
      test.inputs.push_back(std::move(input));
    }
    const auto all = reference::dispatch(test);
    want_ = all[kRank];
    std::vector<reference::Bytes> rows;
    for (const auto& one : all) rows.push_back(one.x);
    y_ = reference::combine(test, all, rows, {.hidden = work_.hidden, .weighted = !by_rank()})[kRank];
    point_result();
  }

  void point_result() {
    counts_.assign(want_.expert_counts.begin(), want_.expert_counts.end());
    offsets64_ = by_rank() ? want_.offsets : want_.padded_offsets;
    offsets_.assign(offsets64_.begin(), offsets64_.end());
    row_weight_ = want_.weight;
    for (std::size_t row = 0; by_rank() && row < want_.rows; ++row) {
      const auto weights = want_.local_weights.begin() + static_cast<std::ptrdiff_t>(row * work_.top_k);
      row_weight_.push_back(std::accumulate(weights, weights + work_.top_k, 0.0f));
    }
    result_.rows = want_.x.data();
    result_.row_count = want_.rows;
    result_.received = std::count_if(want_.token.begin(), want_.token.end(), [](auto token) { return token >= 0; });
    result_.local_experts = static_cast<std::uint32_t>(counts_.size());
    result_.row_rank = want_.source_rank.data();
    result_.row_token = want_.token.data();
    result_.row_slot = want_.slot.data();
    result_.row_weight = row_weight_.data();
    result_.local_ids = by_rank() ? want_.local_experts.data() : nullptr;
    result_.local_weights = by_rank() ? want_.local_weights.data() : nullptr;
    result_.expert_counts = counts_.data();
    result_.expert_offsets = offsets_.data();
    result_.expert_offsets64 = offsets64_.data();
  }

  std::string complaint() { return verifier_->received(kBatch, result_).message(); }

  Workload work_;
  std::unique_ptr<RoutingSource> routing_;
  std::optional<Payload> payload_;
  std::optional<Verifier> verifier_;
  reference::Received want_;
  reference::Bytes y_;
  std::vector<std::int32_t> counts_, offsets_;
  std::vector<std::int64_t> offsets64_;
  std::vector<float> row_weight_;
  rh_dispatch_result result_{};
};

TEST_P(VerifierTest, AcceptsARightResult) {
  EXPECT_EQ(complaint(), "");
  EXPECT_EQ(verifier_->combined(kBatch, y_.data()).message(), "");
}

TEST_P(VerifierTest, SeesOneWrongByteOfOneRow) {
  want_.x[work_.row_bytes() * 2 + 5] ^= std::byte{1};
  EXPECT_THAT(complaint(), AllOf(HasSubstr("batch 3: row 2 ("), HasSubstr("element 5")));
}

TEST_P(VerifierTest, SeesTheRowsOfAnotherRound) {
  EXPECT_NE(verifier_->received(kBatch + 1, result_).message(), "");
}

TEST_P(VerifierTest, SeesEachWrongField) {
  ++counts_[0];
  EXPECT_THAT(complaint(), HasSubstr("expert_counts[0]"));
  point_result();
  ++offsets_[1];
  EXPECT_THAT(complaint(), HasSubstr("expert_offsets[1]"));
  point_result();
  ++offsets64_[1];
  EXPECT_THAT(complaint(), HasSubstr("expert_offsets64[1]"));
  point_result();
  want_.token[1] += 1;
  EXPECT_THAT(complaint(), HasSubstr("row_token[1]"));
  want_.token[1] -= 1;
  want_.slot[1] += 1;
  EXPECT_THAT(complaint(), HasSubstr("row_slot[1]"));
  want_.slot[1] -= 1;
  row_weight_[0] += 1;
  EXPECT_THAT(complaint(), HasSubstr("row_weight[0]"));
  point_result();
  --result_.row_count;
  EXPECT_THAT(complaint(), HasSubstr("row_count"));
  point_result();
  --result_.received;
  EXPECT_THAT(complaint(), HasSubstr("received"));
}

TEST_P(VerifierTest, SeesOneWrongSum) {
  y_[work_.row_bytes() * 80] ^= std::byte{0x40};
  EXPECT_THAT(verifier_->combined(kBatch, y_.data()).message(), HasSubstr("combined tokens from 64 on"));
}

INSTANTIATE_TEST_SUITE_P(Layouts, VerifierTest, testing::Values(RH_LAYOUT_RANK, RH_LAYOUT_EXPERT),
                         [](const auto& layout) { return layout.param == RH_LAYOUT_RANK ? "rank" : "expert"; });

}  // namespace
}  // namespace railhead::bench
