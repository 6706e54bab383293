#include "kernels/plan/bases.hpp"

#include <limits>
#include <string>

namespace railhead::kernels {
namespace {

constexpr uint64_t kMaxRows = std::numeric_limits<int32_t>::max();  // callers get counts and offsets as int32

// base[s][i] = counts of column i over the sources before s; the last row and sum hold the totals. Sources outermost,
// so that both sides are walked in memory order. Rows before an overflow are right; the caller checks `sum`.
void exclusive_sums(std::span<const uint32_t* const> slices, size_t offset, size_t columns, std::vector<uint32_t>& base,
                    std::vector<uint64_t>& sum) {
  base.resize((slices.size() + 1) * columns);
  sum.assign(columns, 0);
  uint32_t* row = base.data();
  for (const uint32_t* slice : slices) {
    for (size_t i = 0; i < columns; ++i) {
      row[i] = static_cast<uint32_t>(sum[i]);
      sum[i] += slice[offset + i];
    }
    row += columns;
  }
  for (size_t i = 0; i < columns; ++i) row[i] = static_cast<uint32_t>(sum[i]);
}

Status too_many_rows(uint32_t rank, uint64_t rows) {
  return {Code::limit_exceeded, "rank " + std::to_string(rank) + " would receive " + std::to_string(rows) +
                                    " rows, padding included, in one dispatch; at most " + std::to_string(kMaxRows) +
                                    " fit, split the call"};
}

}  // namespace

Status RankBases::compute(const ExpertMap& map, uint16_t domain, std::span<const uint32_t* const> slices) {
  const std::span<const uint32_t> ranks = map.ranks_in(domain);
  sources_ = slices.size();
  ranks_ = ranks.size();
  exclusive_sums(slices, map.experts_in(domain).size(), ranks_, base_, sum_);
  for (size_t i = 0; i < ranks_; ++i) {
    if (sum_[i] > kMaxRows) return too_many_rows(ranks[i], sum_[i]);
  }
  return {};
}

Status ExpertBases::compute(const ExpertMap& map, uint16_t domain, std::span<const uint32_t* const> slices,
                            uint32_t align) {
  if (align == 0) return {Code::invalid_argument, "the row alignment of experts is 0; 1 means no padding"};
  sources_ = slices.size();
  experts_ = map.experts_in(domain).size();
  exclusive_sums(slices, 0, experts_, base_, sum_);
  if (Status bad = place_experts(map, domain, align); !bad.ok()) return bad;
  uint32_t* row = base_.data();
  for (size_t s = 0; s <= sources_; ++s, row += experts_) {
    for (size_t e = 0; e < experts_; ++e) row[e] += static_cast<uint32_t>(sum_[e]);
  }
  return {};
}

// Turns the totals in sum_ into the first row of each expert in the output of its rank.
Status ExpertBases::place_experts(const ExpertMap& map, uint16_t domain, uint32_t align) {
  const std::span<const uint32_t> ranks = map.ranks_in(domain);
  rows_.resize(ranks.size());
  padded_rows_.resize(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    const size_t begin = map.first_dense(ranks[i]);
    const size_t end = begin + map.experts_on(ranks[i]).size();
    uint64_t rows = 0;
    uint64_t padded = 0;
    for (size_t e = begin; e < end; ++e) {
      const uint64_t count = sum_[e];
      sum_[e] = padded;
      rows += count;
      padded += (count + align - 1) / align * align;
    }
    if (padded > kMaxRows) return too_many_rows(ranks[i], padded);
    rows_[i] = static_cast<uint32_t>(rows);
    padded_rows_[i] = static_cast<uint32_t>(padded);
  }
  return {};
}

}  // namespace railhead::kernels
