// The routing of one dispatch, seen from its source rank: which rows go where, and under which number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ipc/status.hpp"
#include "kernels/plan/placement.hpp"

namespace railhead::kernels {

enum class IdType : uint8_t { int32, int64 };

// What the router chose. The memory is the caller's and is read only during the call.
struct Routing {
  const void* ids = nullptr;       // tokens x top_k expert ids, -1 = unused slot; may be null when tokens == 0
  const float* weights = nullptr;  // tokens x top_k; null: every used slot weighs 1
  size_t id_pitch = 0;             // ids from one token to the next, >= top_k
  size_t weight_pitch = 0;         // weights from one token to the next, >= top_k; unused when weights is null
  uint32_t tokens = 0;             // <= 2^31 - 1
  uint32_t top_k = 0;              // 1..65535
  IdType id_type = IdType::int64;
};

// One row of one token for one expert. A repeated id of a token is one placement: the weights are added in ascending
// slot order, and slot is the first one.
struct Placement {
  uint16_t domain;
  uint16_t local_rank;      // position of the receiving rank in the domain
  uint16_t expert;          // dense index in the domain
  uint16_t slot;            // column of the routing
  uint32_t expert_ordinal;  // number of this row among the rows of this source for this expert, in token order
  uint32_t rank_ordinal;    // number of this token among the tokens of this source for this rank, in token order
  float weight;
};
static_assert(sizeof(Placement) == 20);

// The placements of one token in one domain.
struct Run {
  uint64_t first;  // index of the first placement
  uint32_t token;
  uint32_t count;
};

// The counts of one source for one domain, as they travel: u32 rows per dense expert, u32 tokens per local rank, u32
// tokens per channel that touch the domain.
struct SliceShape {
  uint32_t experts;
  uint32_t ranks;
  uint32_t channels;
  [[nodiscard]] size_t words() const { return size_t{experts} + ranks + channels; }
};

SliceShape slice_shape(const ExpertMap& map, uint16_t domain, uint32_t channels);

// First token of channel c when `tokens` are split over `channels`; c == channels gives the end.
constexpr uint32_t channel_begin(uint32_t tokens, uint32_t channels, uint32_t c) {
  return static_cast<uint32_t>(uint64_t{c} * tokens / channels);
}

namespace plan_detail {

// The three parts of the slice of one domain.
struct DomainCounts {
  uint32_t* experts;
  uint32_t* ranks;
  uint32_t* channels;
};

struct DomainRun {
  Run run;
  uint16_t domain;
};

}  // namespace plan_detail

// Reusable: a build allocates only where an earlier one was smaller. One thread builds; then any number may read.
class Plan {
 public:
  // Numbers and counts all rows. Fails with invalid_argument (bad id: names row, slot, value and limit) or
  // out_of_memory; the plan then still holds what it held before.
  Status build(const Routing& routing, const ExpertMap& map, uint32_t channels);

  [[nodiscard]] uint32_t tokens() const { return tokens_; }
  [[nodiscard]] uint32_t channels() const { return channels_; }
  [[nodiscard]] uint64_t placement_count() const { return tokens_ == 0 ? 0 : token_first_[tokens_]; }

  // Placements of a token, sorted by (domain, local rank, expert id).
  [[nodiscard]] std::span<const Placement> placements(uint32_t token) const {
    return {placements_.data() + token_first_[token], token_first_[token + 1u] - token_first_[token]};
  }
  [[nodiscard]] std::span<const Placement> placements(const Run& run) const {
    return {placements_.data() + run.first, run.count};
  }
  // The tokens of a channel that touch a domain, ascending.
  [[nodiscard]] std::span<const Run> runs(uint16_t domain, uint32_t channel) const {
    const size_t at = size_t{domain} * channels_ + channel;
    return {runs_.data() + run_first_[at], run_first_[at + 1] - run_first_[at]};
  }
  // Counts for a domain in the layout of SliceShape.
  [[nodiscard]] std::span<const uint32_t> slice(uint16_t domain) const {
    return {slices_.data() + slice_first_[domain], slice_first_[domain + 1u] - slice_first_[domain]};
  }

 private:
  Status translate(const Routing& routing, const ExpertMap& map);
  void reserve(const Routing& routing, const ExpertMap& map, uint32_t channels);
  void lay_out_slices(const ExpertMap& map);
  void number(const Routing& routing, const ExpertMap& map);
  void sort_runs(const ExpertMap& map);

  uint32_t tokens_ = 0;
  uint32_t channels_ = 0;
  std::vector<uint64_t> token_first_;               // tokens + 1 offsets into placements_
  std::vector<Placement> placements_;               // by token; grows, never shrinks
  std::vector<Run> runs_;                           // by (domain, channel, token)
  std::vector<uint64_t> run_first_;                 // domains x channels + 1 offsets into runs_
  std::vector<uint32_t> slices_;                    // of all domains, one after the other
  std::vector<size_t> slice_first_;                 // domains + 1 offsets into slices_
  std::vector<uint32_t> places_;                    // scratch: tokens x top_k places
  std::vector<uint64_t> keys_;                      // scratch: sort keys of one token, later one cursor per domain
  std::vector<plan_detail::DomainCounts> counts_;   // scratch: where the counts of each domain are in slices_
  std::vector<plan_detail::DomainRun> token_runs_;  // scratch: runs in token order
  size_t token_run_count_ = 0;
};

}  // namespace railhead::kernels
