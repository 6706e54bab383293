// Where the rows of each source start in the receivers' outputs: the sums over the slices of all sources.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ipc/status.hpp"
#include "kernels/plan/placement.hpp"

namespace railhead::kernels {

// Both classes are computed per domain from the slices of all sources (slices[s] in the layout of SliceShape for this
// domain, s = 0..R-1). The slices may lie in memory that others write: every word is read once, and no value in it can
// make the computation read or write out of bounds. They are reusable without allocation; one thread computes, then any
// number may read. On failure (limit_exceeded: a receiver would get more than 2^31 - 1 rows) the content is
// unspecified.

// Layout `rank`: one row per (token, receiving rank), ordered by (source rank, token).
class RankBases {
 public:
  Status compute(const ExpertMap& map, uint16_t domain, std::span<const uint32_t* const> slices);

  // Row in the output of a local rank = base + rank ordinal, valid while below limit.
  [[nodiscard]] uint32_t base(uint32_t source, uint32_t local_rank) const {
    return base_[source * ranks_ + local_rank];
  }
  [[nodiscard]] uint32_t limit(uint32_t source, uint32_t local_rank) const { return base(source + 1, local_rank); }
  // All bases of a source, by local rank.
  [[nodiscard]] std::span<const uint32_t> of_source(uint32_t source) const {
    return {base_.data() + source * ranks_, ranks_};
  }
  // Rows that a local rank receives.
  [[nodiscard]] uint32_t rows(uint32_t local_rank) const { return base_[sources_ * ranks_ + local_rank]; }

 private:
  size_t sources_ = 0;
  size_t ranks_ = 0;
  std::vector<uint32_t> base_;  // (sources + 1) x ranks; the last row holds the totals
  std::vector<uint64_t> sum_;   // scratch
};

// Layout `expert`: one row per (token, local expert), ordered by (expert, source rank, token); each expert starts at a
// multiple of `align` rows, and the rows between its last one and the next multiple are padding.
class ExpertBases {
 public:
  // align >= 1, else invalid_argument.
  Status compute(const ExpertMap& map, uint16_t domain, std::span<const uint32_t* const> slices, uint32_t align);

  // Row in the output of the expert's rank = base + expert ordinal, valid while below limit. Experts by dense index.
  [[nodiscard]] uint32_t base(uint32_t source, uint32_t expert) const { return base_[source * experts_ + expert]; }
  [[nodiscard]] uint32_t limit(uint32_t source, uint32_t expert) const { return base(source + 1, expert); }
  // All bases of a source, by dense expert index.
  [[nodiscard]] std::span<const uint32_t> of_source(uint32_t source) const {
    return {base_.data() + source * experts_, experts_};
  }
  // The rows of an expert are [first, end); padding is [end, first of the next expert of the rank or padded_rows).
  [[nodiscard]] uint32_t first(uint32_t expert) const { return base(0, expert); }
  [[nodiscard]] uint32_t end(uint32_t expert) const { return base_[sources_ * experts_ + expert]; }
  [[nodiscard]] uint32_t count(uint32_t expert) const { return end(expert) - first(expert); }
  // Rows that a local rank receives, without padding; and the length of its output, padding included.
  [[nodiscard]] uint32_t rows(uint32_t local_rank) const { return rows_[local_rank]; }
  [[nodiscard]] uint32_t padded_rows(uint32_t local_rank) const { return padded_rows_[local_rank]; }

 private:
  Status place_experts(const ExpertMap& map, uint16_t domain, uint32_t align);

  size_t sources_ = 0;
  size_t experts_ = 0;
  std::vector<uint32_t> base_;  // (sources + 1) x experts; the last row holds the ends
  std::vector<uint32_t> rows_;
  std::vector<uint32_t> padded_rows_;
  std::vector<uint64_t> sum_;  // scratch
};

}  // namespace railhead::kernels
