// Dispatch and combine of one Mixture-of-Experts layer as an MPI application writes it: what all modes share.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/ep-bench/routing.hpp"
#include "tools/ep-bench/tensor.hpp"

namespace railhead::peers {

using Bf16 = std::uint16_t;

struct MoeShape {
  int rank = 0;
  int ranks = 1;
  std::uint32_t tokens = 0;
  std::uint32_t hidden = 0;
  std::uint32_t top_k = 0;
  std::uint32_t experts = 0;
  bool bypass_self = false;  // own rows skip the send buffer and MPI (dedup and expert)

  [[nodiscard]] std::size_t row_bytes() const { return std::size_t{hidden} * sizeof(Bf16); }
  // Contiguous blocks; the first (experts % ranks) ranks own one more.
  [[nodiscard]] std::uint32_t first_expert(int owner) const;
  [[nodiscard]] int owner(std::int64_t expert) const;
  // The description of a row: its token, top_k experts of the receiver (then -1), their top_k weights (fp32 bits).
  [[nodiscard]] std::size_t info_words() const { return 1 + 2 * std::size_t{top_k}; }
  [[nodiscard]] std::uint32_t local_experts() const { return first_expert(rank + 1) - first_expert(rank); }
};

// One mode. All calls are collective. The experts are the identity: combine sends received rows back as they are.
class MoeExchange {
 public:
  virtual ~MoeExchange() = default;
  MoeExchange(const MoeExchange&) = delete;
  MoeExchange& operator=(const MoeExchange&) = delete;

  // x and y: tokens x hidden. Both calls are complete when they return; x and routing stay unchanged until combine has.
  virtual void dispatch(const Bf16* x, const bench::Routing& routing) = 0;
  virtual void combine(Bf16* y) = 0;

  // Of the last dispatch.
  [[nodiscard]] virtual std::size_t received_rows() const = 0;
  // Every received row is the token that its description names, by moe_value().
  [[nodiscard]] virtual bool received_is_right() const = 0;
  // What combine makes of token t with identity experts is x times this: 1 where weights are applied, else the rows.
  [[nodiscard]] virtual float gain(std::uint32_t token) const = 0;

 protected:
  explicit MoeExchange(const MoeShape& shape) : shape_(shape) {}
  const MoeShape shape_;
};

std::unique_ptr<MoeExchange> make_dedup(const MoeShape& shape);
std::unique_ptr<MoeExchange> make_expert(const MoeShape& shape);
// Null where the ranks do not all share memory.
std::unique_ptr<MoeExchange> make_window(const MoeShape& shape, bool stream);

// For each token and destination rank: is there a row, and which one of those for that rank. Reused between rounds.
class RankPlan {
 public:
  void build(const MoeShape& shape, const bench::Routing& routing);

  [[nodiscard]] const std::vector<int>& counts() const { return counts_; }
  // -1: the token has no row on that rank.
  [[nodiscard]] int slot(std::uint32_t token, int rank) const { return slots_[token * counts_.size() + rank]; }
  [[nodiscard]] int rows_of(std::uint32_t token) const;
  // Writes info_words() words.
  static void describe(const MoeShape& shape, const bench::Routing& routing, std::uint32_t token, int rank,
                       std::int32_t* info);

 private:
  std::vector<int> counts_;
  std::vector<int> slots_;
};

// Exclusive sums, with the total as one more entry.
void prefix_sums(const std::vector<int>& counts, std::vector<int>& sums);

// The number that element i of a token's row starts with: any row can be checked by its description.
float moe_value(int rank, std::uint32_t token, std::uint32_t i);
bool row_is(const Bf16* row, std::uint32_t hidden, int rank, std::uint32_t token);

Bf16 to_bf16(float value);
float from_bf16(Bf16 value);

// out = sum of rows (times weights if not empty), in fp32, rounded once. At least one row.
void sum_rows(Bf16* out, std::span<const Bf16* const> rows, std::span<const float> weights, std::uint32_t hidden);

// An MPI type of `bytes` bytes, freed with the object (before MPI_Finalize).
class MpiBlock {
 public:
  explicit MpiBlock(std::size_t bytes);
  ~MpiBlock();
  MpiBlock(const MpiBlock&) = delete;
  MpiBlock& operator=(const MpiBlock&) = delete;
  [[nodiscard]] MPI_Datatype type() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace railhead::peers
