// The sum of combine: several rows, weighted, to one.
//
//   out[i] = round( G_0[i] + G_1[i] + ... )     groups ascending, empty ones left out; no group at all: +0
//   G_g[i] = w_0 * x_0[i] + w_1 * x_1[i] + ...  terms ascending; without weights: x_0[i] + x_1[i] + ...
//
// All arithmetic is fp32, round to nearest even; multiply and add round apart (no FMA); a sum starts with its first
// summand, not with zero, so -0 survives; subnormals are exact. The one rounding to the output type and the NaN rule
// are those of types.hpp. Every SIMD level gives the same bits, whatever floating-point mode the calling thread is in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/host/copy.hpp"
#include "kernels/host/types.hpp"

namespace railhead::kernels {

// Terms that are summed before they meet other groups: the rows of one domain, or one partial sum from another.
struct ReduceGroup {
  const void* const* rows = nullptr;  // `count` rows of the same length; no alignment needed
  const float* weights = nullptr;     // `count` weights; null: the terms are used as they are
  size_t count = 0;
  DataType type = DataType::bf16;  // bf16, fp16 or fp32
};

// Writes `length` elements of out_type (bf16, fp16 or fp32: the caller has checked both types with is_float). `out`
// must not overlap a row, unless it is that row itself in the same type. non_temporal takes effect where out is 64-byte
// aligned; call fence() before telling anybody. Any thread.
void reduce_rows(void* out, DataType out_type, const ReduceGroup* groups, size_t group_count, size_t length,
                 StoreMode mode);

}  // namespace railhead::kernels
