// Compiled with AVX-512 enabled: use no inline function of a shared header here. The linker keeps one copy of each, and
// if it were this one, processors without AVX-512 would run into it.
//
// AVX512_BF16 is left alone on purpose: its instructions flush subnormals.
#include <immintrin.h>
#include <stdint.h>

#include "kernels/host/reduce_paths.hpp"

namespace railhead::kernels::avx512 {
namespace {

constexpr size_t kLanes = 16;
constexpr size_t kVectors = 8;  // a group's sums and the total fill half the registers
constexpr size_t kBlock = kLanes * kVectors;
constexpr size_t kLine = 64;

// Bytes of prefetch in each row. Rows are short and hardware prefetchers stop at every page. Measured on rows out of
// the cache: 8 rows read 14 % faster with 256 than with 1024 and 8 % faster than with none; 1 row 9 % faster with 1024.
constexpr size_t prefetch_distance(size_t rows) {
  return rows < 4 ? 1024 : 256;
}

struct Block {
  __m512 v[kVectors];
};

template <DataType type>
__m512 load(const char* row) {
  if constexpr (type == DataType::fp32) {
    return _mm512_loadu_ps(row);
  } else {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
    if constexpr (type == DataType::fp16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
}

template <DataType type>
__m512 load_part(const char* row, __mmask16 mask) {
  if constexpr (type == DataType::fp32) {
    return _mm512_maskz_loadu_ps(mask, row);
  } else {
    const __m256i half = _mm256_maskz_loadu_epi16(mask, row);
    if constexpr (type == DataType::fp16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
}

__m512i canonical_bits(__m512 value) {
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(_mm512_castps_si512(value), nan, _mm512_set1_epi32(0x7fc00000));
}

// 16-bit output types only.
template <DataType type>
__m256i narrow(__m512 value) {
  const __m512i bits = canonical_bits(value);
  if constexpr (type == DataType::fp16) {
    return _mm512_cvtps_ph(_mm512_castsi512_ps(bits), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

void store_line(char* out, __m512i value, bool stream) {
  if (stream) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(out), value);
  } else {
    _mm512_storeu_si512(out, value);
  }
}

template <DataType type>
void store_block(char* out, const Block& block, bool stream) {
  if constexpr (type == DataType::fp32) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kVectors; ++i) store_line(out + i * kLine, canonical_bits(block.v[i]), stream);
  } else {
#pragma GCC unroll 8
    for (size_t i = 0; i < kVectors; i += 2) {
      const __m512i low = _mm512_castsi256_si512(narrow<type>(block.v[i]));
      store_line(out + i / 2 * kLine, _mm512_inserti64x4(low, narrow<type>(block.v[i + 1]), 1), stream);
    }
  }
}

template <DataType type>
void store_part(char* out, __m512 value, __mmask16 mask) {
  if constexpr (type == DataType::fp32) {
    _mm512_mask_storeu_epi32(out, mask, canonical_bits(value));
  } else {
    _mm256_mask_storeu_epi16(out, mask, narrow<type>(value));
  }
}

template <DataType type, bool weighted>
void sum_terms(Block& sum, const ReduceGroup& group, size_t begin) {
  constexpr size_t kSize = type == DataType::fp32 ? 4 : 2;
  const size_t ahead = prefetch_distance(group.count);
  for (size_t term = 0; term < group.count; ++term) {
    const char* row = static_cast<const char*>(group.rows[term]) + begin * kSize;
#pragma GCC unroll 8
    for (size_t line = 0; line < kBlock * kSize; line += kLine) _mm_prefetch(row + ahead + line, _MM_HINT_T0);
    const __m512 weight = weighted ? _mm512_set1_ps(group.weights[term]) : _mm512_setzero_ps();
    if (term == 0) {
#pragma GCC unroll 8
      for (size_t i = 0; i < kVectors; ++i) {
        const __m512 x = load<type>(row + i * kLanes * kSize);
        sum.v[i] = weighted ? _mm512_mul_ps(weight, x) : x;
      }
    } else {
#pragma GCC unroll 8
      for (size_t i = 0; i < kVectors; ++i) {
        const __m512 x = load<type>(row + i * kLanes * kSize);
        sum.v[i] = _mm512_add_ps(sum.v[i], weighted ? _mm512_mul_ps(weight, x) : x);
      }
    }
  }
}

template <DataType type>
void sum_terms(Block& sum, const ReduceGroup& group, size_t begin) {
  if (group.weights == nullptr) {
    sum_terms<type, false>(sum, group, begin);
  } else {
    sum_terms<type, true>(sum, group, begin);
  }
}

void sum_group(Block& sum, const ReduceGroup& group, size_t begin) {
  switch (group.type) {
    case DataType::bf16: return sum_terms<DataType::bf16>(sum, group, begin);
    case DataType::fp16: return sum_terms<DataType::fp16>(sum, group, begin);
    case DataType::fp32: return sum_terms<DataType::fp32>(sum, group, begin);
    case DataType::u8: return;
  }
}

template <DataType type>
__m512 sum_part(const ReduceGroup& group, size_t begin, __mmask16 mask) {
  constexpr size_t kSize = type == DataType::fp32 ? 4 : 2;
  __m512 sum = _mm512_setzero_ps();
  for (size_t term = 0; term < group.count; ++term) {
    __m512 x = load_part<type>(static_cast<const char*>(group.rows[term]) + begin * kSize, mask);
    if (group.weights != nullptr) x = _mm512_mul_ps(_mm512_set1_ps(group.weights[term]), x);
    sum = term == 0 ? x : _mm512_add_ps(sum, x);
  }
  return sum;
}

__m512 sum_part(const ReduceGroup& group, size_t begin, __mmask16 mask) {
  switch (group.type) {
    case DataType::bf16: return sum_part<DataType::bf16>(group, begin, mask);
    case DataType::fp16: return sum_part<DataType::fp16>(group, begin, mask);
    case DataType::fp32: return sum_part<DataType::fp32>(group, begin, mask);
    case DataType::u8: break;
  }
  return _mm512_setzero_ps();
}

// The callers leave no empty group.
template <DataType out_type>
void reduce_block(char* out, const ReduceGroup* groups, const ReduceGroup* end, size_t begin, bool stream) {
  Block total;
  sum_group(total, *groups, begin);
  for (const ReduceGroup* group = groups + 1; group != end; ++group) {
    if (group->count == 0) continue;
    Block sum;
    sum_group(sum, *group, begin);
#pragma GCC unroll 8
    for (size_t i = 0; i < kVectors; ++i) total.v[i] = _mm512_add_ps(total.v[i], sum.v[i]);
  }
  store_block<out_type>(out, total, stream);
}

template <DataType out_type>
void reduce_part(char* out, const ReduceGroup* groups, const ReduceGroup* end, size_t begin, __mmask16 mask) {
  __m512 total = sum_part(*groups, begin, mask);
  for (const ReduceGroup* group = groups + 1; group != end; ++group) {
    if (group->count > 0) total = _mm512_add_ps(total, sum_part(*group, begin, mask));
  }
  store_part<out_type>(out, total, mask);
}

template <DataType out_type>
void reduce(char* out, const ReduceGroup* groups, const ReduceGroup* end, size_t length, bool stream) {
  constexpr size_t kSize = out_type == DataType::fp32 ? 4 : 2;
  size_t begin = 0;
  for (; begin + kBlock <= length; begin += kBlock) {
    reduce_block<out_type>(out + begin * kSize, groups, end, begin, stream);
  }
  for (; begin < length; begin += kLanes) {
    const size_t left = length - begin;
    const auto mask = static_cast<__mmask16>(left < kLanes ? (1u << left) - 1 : 0xffff);
    reduce_part<out_type>(out + begin * kSize, groups, end, begin, mask);
  }
}

}  // namespace

void reduce_rows(void* out, DataType out_type, const ReduceGroup* groups, size_t group_count, size_t length,
                 bool stream) {
  const ReduceGroup* const end = groups + group_count;
  while (groups != end && groups->count == 0) ++groups;
  char* bytes = static_cast<char*>(out);
  if (groups == end) {
    __builtin_memset(bytes, 0, length * (out_type == DataType::fp32 ? 4 : 2));
    return;
  }
  stream = stream && reinterpret_cast<uintptr_t>(out) % kLine == 0;
  switch (out_type) {
    case DataType::bf16: return reduce<DataType::bf16>(bytes, groups, end, length, stream);
    case DataType::fp16: return reduce<DataType::fp16>(bytes, groups, end, length, stream);
    case DataType::fp32: return reduce<DataType::fp32>(bytes, groups, end, length, stream);
    case DataType::u8: return;
  }
}

}  // namespace railhead::kernels::avx512
