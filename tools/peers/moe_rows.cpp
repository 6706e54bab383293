// Plan, numbers and sums that the modes share.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tools/peers/moe_exchange.hpp"

namespace railhead::peers {

std::uint32_t MoeShape::first_expert(int owner) const {
  const auto index = static_cast<std::uint32_t>(owner);
  const auto count = static_cast<std::uint32_t>(ranks);
  return index * (experts / count) + std::min(index, experts % count);
}

int MoeShape::owner(std::int64_t expert) const {
  const auto id = static_cast<std::uint32_t>(expert);
  const auto count = static_cast<std::uint32_t>(ranks);
  const std::uint32_t small = experts / count;
  const std::uint32_t in_large_blocks = (small + 1) * (experts % count);
  if (id < in_large_blocks) return static_cast<int>(id / (small + 1));
  return static_cast<int>(experts % count + (id - in_large_blocks) / small);
}

void RankPlan::build(const MoeShape& shape, const bench::Routing& routing) {
  counts_.assign(static_cast<std::size_t>(shape.ranks), 0);
  slots_.assign(std::size_t{shape.tokens} * counts_.size(), -1);
  for (std::uint32_t token = 0; token < shape.tokens; ++token) {
    int* slots = &slots_[token * counts_.size()];
    for (std::uint32_t k = 0; k < shape.top_k; ++k) {
      const std::int64_t expert = routing.ids[std::size_t{token} * shape.top_k + k];
      if (expert < 0) continue;
      const int rank = shape.owner(expert);
      if (slots[rank] < 0) slots[rank] = counts_[rank]++;
    }
  }
}

int RankPlan::rows_of(std::uint32_t token) const {
  const auto first = slots_.begin() + static_cast<std::ptrdiff_t>(token * counts_.size());
  return static_cast<int>(
      std::count_if(first, first + static_cast<std::ptrdiff_t>(counts_.size()), [](int slot) { return slot >= 0; }));
}

void RankPlan::describe(const MoeShape& shape, const bench::Routing& routing, std::uint32_t token, int rank,
                        std::int32_t* info) {
  *info = static_cast<std::int32_t>(token);
  std::int32_t* experts = info + 1;
  std::int32_t* weights = experts + shape.top_k;
  std::uint32_t used = 0;
  for (std::uint32_t k = 0; k < shape.top_k; ++k) {
    const std::size_t at = std::size_t{token} * shape.top_k + k;
    if (routing.ids[at] < 0 || shape.owner(routing.ids[at]) != rank) continue;
    experts[used] = static_cast<std::int32_t>(routing.ids[at]);
    weights[used++] = std::bit_cast<std::int32_t>(routing.weights[at]);
  }
  for (; used < shape.top_k; ++used) {
    experts[used] = -1;
    weights[used] = 0;
  }
}

void prefix_sums(const std::vector<int>& counts, std::vector<int>& sums) {
  sums.assign(counts.size() + 1, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) sums[i + 1] = sums[i] + counts[i];
}

float moe_value(int rank, std::uint32_t token, std::uint32_t i) {
  // 97 small multiples of 1/32: exact in bf16, and so are sums of up to two of them.
  return static_cast<float>(static_cast<int>((token * 31 + i * 7 + static_cast<std::uint32_t>(rank) * 13) % 97) - 48) /
         32;
}

bool row_is(const Bf16* row, std::uint32_t hidden, int rank, std::uint32_t token) {
  for (std::uint32_t i = 0; i < hidden; ++i) {
    if (row[i] != to_bf16(moe_value(rank, token, i))) return false;
  }
  return true;
}

Bf16 to_bf16(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  bits += 0x7fff + ((bits >> 16) & 1);  // to nearest, ties to even; the benchmark has no NaN
  return static_cast<Bf16>(bits >> 16);
}

float from_bf16(Bf16 value) {
  return std::bit_cast<float>(std::uint32_t{value} << 16);
}

namespace {

// A block of the sum stays in the first-level cache (or registers) while the rows stream by.
constexpr std::uint32_t kBlock = 512;

template <bool kFirst>
void add_block(float* __restrict sum, const Bf16* __restrict row, float weight, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const float term = weight * from_bf16(row[i]);
    sum[i] = kFirst ? term : sum[i] + term;
  }
}

// A function of its own: g++ 12 does not vectorise the loop over an array that is declared with alignas.
void round_block(Bf16* __restrict out, const float* __restrict sum, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) out[i] = to_bf16(sum[i]);
}

}  // namespace

void sum_rows(Bf16* out, std::span<const Bf16* const> rows, std::span<const float> weights, std::uint32_t hidden) {
  alignas(64) float sum[kBlock];
  for (std::uint32_t start = 0; start < hidden; start += kBlock) {
    const std::uint32_t count = std::min(kBlock, hidden - start);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const float weight = weights.empty() ? 1.0f : weights[r];
      if (r == 0) {
        add_block<true>(sum, rows[r] + start, weight, count);
      } else {
        add_block<false>(sum, rows[r] + start, weight, count);
      }
    }
    round_block(out + start, sum, count);
  }
}

MpiBlock::MpiBlock(std::size_t bytes) {
  MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type_);
  MPI_Type_commit(&type_);
}

MpiBlock::~MpiBlock() {
  MPI_Type_free(&type_);
}

}  // namespace railhead::peers
