// The plain single-process model of dispatch and combine: what every rank must receive and get back.
// Written to be obviously right, not fast, and independent of kernels/. Inputs are trusted: tests make them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/reference/numbers.hpp"

namespace railhead::reference {

enum class Layout : std::uint8_t { rank, expert };

using Bytes = std::vector<std::byte>;

// The input of one rank.
struct RankInput {
  std::uint32_t tokens = 0;
  Bytes x;                        // tokens rows of row_bytes()
  std::vector<std::int64_t> ids;  // tokens x top_k; -1 is an unused slot
  std::vector<float> weights;     // tokens x top_k; empty: every weight is 1
  Bytes side;                     // tokens x side_bytes
};

struct Case {
  std::vector<std::uint16_t> domain_of_rank;  // its size is the number of ranks
  std::vector<std::uint16_t> rank_of_expert;  // its size is the number of experts
  std::uint32_t top_k = 1;
  std::uint32_t hidden = 1;
  NumberType type = NumberType::bf16;
  std::uint32_t side_bytes = 0;
  Layout layout = Layout::rank;
  std::uint32_t align = 1;  // expert layout: each expert's rows are padded to a multiple
  std::vector<RankInput> inputs;

  [[nodiscard]] std::size_t ranks() const { return domain_of_rank.size(); }
  [[nodiscard]] std::size_t row_bytes() const { return hidden * size_of(type); }
  // The experts of a rank, ascending: a local expert id is an index into this.
  [[nodiscard]] std::vector<std::uint32_t> experts_of(std::uint32_t rank) const;
};

// Contiguous blocks of experts; the first (experts % ranks) ranks get one more.
std::vector<std::uint16_t> default_rank_of_expert(std::uint32_t experts, std::uint32_t ranks);

// One used expert of a token: repeated ids are one entry.
struct Use {
  std::uint32_t expert = 0;
  std::uint32_t slot = 0;  // the first slot that names the expert
  float weight = 0;        // weights of all its slots, added in ascending slot order in fp32
};

// The used experts of a token in ascending expert id.
std::vector<Use> uses_of(const Case& test, std::uint32_t rank, std::uint32_t token);

// What one rank receives. Padding rows (expert layout) are zero bytes with source_rank, token and slot -1, weight 0.
struct Received {
  std::size_t rows = 0;      // padding included
  std::size_t received = 0;  // without padding
  Bytes x;                   // rows x row_bytes
  Bytes side;                // rows x side_bytes
  std::vector<std::int32_t> source_rank;
  std::vector<std::int32_t> token;
  std::vector<std::int32_t> slot;  // rank layout: the lowest slot that names an expert of this rank

  std::vector<std::uint32_t> expert_counts;  // (token, expert) pairs per local expert, without padding
  std::vector<std::int64_t> offsets;         // exclusive sums of expert_counts, one more entry for the total
  std::vector<std::int64_t> padded_offsets;  // the same with every count rounded up to a multiple of align

  // expert layout, one per row.
  std::vector<std::int32_t> expert;  // local expert id; -1 on padding
  // One per row; rank layout: the sum over the row's local experts, ascending, in fp32.
  std::vector<float> weight;

  // rank layout, rows x top_k: the row's local experts, ascending, then -1 with weight 0.
  std::vector<std::int32_t> local_experts;
  std::vector<float> local_weights;
};

// One Received per rank. Order of rows: rank layout by (source rank, token); expert layout by (local expert, source
// rank, token).
std::vector<Received> dispatch(const Case& test);

struct CombineOptions {
  NumberType input = NumberType::bf16;   // bf16, fp16 or fp32
  NumberType output = NumberType::bf16;  // bf16, fp16 or fp32
  NumberType wire = NumberType::bf16;    // bf16 or fp32: what a partial sum is rounded to between domains
  std::uint32_t hidden = 1;
  bool weighted = false;  // multiply by Received::weight; expert layout only
};

// y of every rank, tokens x hidden. rows[r] holds the expert outputs of rank r in the row order of its Received
// (padding rows are never read).
//   y = round_output(sum of P_d over the domains d, ascending)
//   P_d = fp32 sum over the token's rows in d, ordered by (rank, expert); a term is weight * row or the row;
//         product and sum round apart; for another domain than the token's own, P_d is rounded to `wire`
// Sums start with their first term (not with 0). Domains without rows add nothing; a token without rows gives +0.
std::vector<Bytes> combine(const Case& test, const std::vector<Received>& received, const std::vector<Bytes>& rows,
                           const CombineOptions& options);

}  // namespace railhead::reference
