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
constexpr size_t kLine = 64;

// Elements whose sums stay in the first-level cache while the rows stream by, 1 KB of each 16-bit row at a time: long
// enough for the hardware prefetchers. Measured on 3 to 4 rows out of the cache, two cores busy: 8 % faster than 128
// elements in registers with software prefetch, 5 % faster than 256 and 1024.
constexpr size_t kBlock = 512;

// Rows added in one pass over the sums, and how far ahead of the sum their lines are asked for: a row ends every few
// pages, and the hardware prefetchers begin anew in each. Measured on 8 rows out of the cache, two cores busy: one row
// a pass without asking 10.6 ms, two and 2 KB ahead 9.0 ms, four 8.5 ms; 1 KB and 4 KB ahead are no faster.
constexpr size_t kRowsPerPass = 4;
constexpr size_t kAhead = 2048;

template <DataType type>
constexpr size_t kSize = type == DataType::fp32 ? 4 : 2;

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

__mmask16 first_lanes(size_t count) {  // count in 1..15
  return static_cast<__mmask16>((1u << count) - 1);
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
void store_part(char* out, __m512 value, __mmask16 mask) {
  if constexpr (type == DataType::fp32) {
    _mm512_mask_storeu_epi32(out, mask, canonical_bits(value));
  } else {
    _mm256_mask_storeu_epi16(out, mask, narrow<type>(value));
  }
}

// Rounds `count` sums to the output type.
template <DataType type>
void store(char* out, const float* sum, size_t count, bool stream) {
  constexpr size_t kPerLine = kLine / kSize<type>;
  size_t i = 0;
  for (; i + kPerLine <= count; i += kPerLine) {
    if constexpr (type == DataType::fp32) {
      store_line(out + i * kSize<type>, canonical_bits(_mm512_load_ps(sum + i)), stream);
    } else {
      const __m512i low = _mm512_castsi256_si512(narrow<type>(_mm512_load_ps(sum + i)));
      const __m256i high = narrow<type>(_mm512_load_ps(sum + i + kLanes));
      store_line(out + i * kSize<type>, _mm512_inserti64x4(low, high, 1), stream);
    }
  }
  for (; i < count; i += kLanes) {
    const __mmask16 mask = count - i < kLanes ? first_lanes(count - i) : static_cast<__mmask16>(0xffff);
    store_part<type>(out + i * kSize<type>, _mm512_load_ps(sum + i), mask);
  }
}

// Adds elements begin .. begin + count of n rows to the sums, one row after the other. `first`: the sums begin with
// them.
template <DataType type, bool weighted, bool first, size_t n>
void add_rows(float* sum, const void* const* rows, const float* weights, size_t begin, size_t count) {
  const char* row[n];
  __m512 weight[n];
#pragma GCC unroll 4
  for (size_t k = 0; k < n; ++k) {
    row[k] = static_cast<const char*>(rows[k]) + begin * kSize<type>;
    weight[k] = _mm512_set1_ps(weighted ? weights[k] : 1);
  }
  const auto add = [&](size_t i, const auto& load_lanes) {
    __m512 total = _mm512_setzero_ps();
    if constexpr (!first) total = _mm512_load_ps(sum + i);
#pragma GCC unroll 4
    for (size_t k = 0; k < n; ++k) {
      __m512 x = load_lanes(row[k] + i * kSize<type>);
      if constexpr (weighted) x = _mm512_mul_ps(weight[k], x);
      total = first && k == 0 ? x : _mm512_add_ps(total, x);
    }
    _mm512_store_ps(sum + i, total);
  };
  constexpr size_t kPerLine = kLine / kSize<type>;
  size_t i = 0;
  for (; i + kPerLine <= count; i += kPerLine) {
#pragma GCC unroll 4
    for (size_t k = 0; k < n; ++k) _mm_prefetch(row[k] + i * kSize<type> + kAhead, _MM_HINT_T1);
#pragma GCC unroll 2
    for (size_t lanes = 0; lanes < kPerLine; lanes += kLanes) add(i + lanes, load<type>);
  }
  for (; i + kLanes <= count; i += kLanes) add(i, load<type>);
  if (i == count) return;
  const __mmask16 mask = first_lanes(count - i);
  add(i, [mask](const char* at) { return load_part<type>(at, mask); });
}

// Adds the next rows, at most kRowsPerPass of them, and returns how many.
template <DataType type, bool weighted, bool first>
size_t add_some(float* sum, const ReduceGroup& group, size_t term, size_t begin, size_t count) {
  const void* const* const rows = group.rows + term;
  const float* const weights = weighted ? group.weights + term : nullptr;
  switch (group.count - term) {
    case 1: add_rows<type, weighted, first, 1>(sum, rows, weights, begin, count); return 1;
    case 2: add_rows<type, weighted, first, 2>(sum, rows, weights, begin, count); return 2;
    case 3: add_rows<type, weighted, first, 3>(sum, rows, weights, begin, count); return 3;
    default: add_rows<type, weighted, first, kRowsPerPass>(sum, rows, weights, begin, count); return kRowsPerPass;
  }
}

template <DataType type, bool weighted, bool first>
void sum_rows(float* sum, const ReduceGroup& group, size_t begin, size_t count) {
  size_t term = add_some<type, weighted, first>(sum, group, 0, begin, count);
  while (term < group.count) term += add_some<type, weighted, false>(sum, group, term, begin, count);
}

template <DataType type, bool first>
void sum_rows(float* sum, const ReduceGroup& group, size_t begin, size_t count) {
  if (group.weights == nullptr) {
    sum_rows<type, false, first>(sum, group, begin, count);
  } else {
    sum_rows<type, true, first>(sum, group, begin, count);
  }
}

// Adds elements begin .. begin + count of a group that is not empty, row after row. `first`: the sums begin with them.
template <bool first>
void sum_group(float* sum, const ReduceGroup& group, size_t begin, size_t count) {
  switch (group.type) {
    case DataType::bf16: return sum_rows<DataType::bf16, first>(sum, group, begin, count);
    case DataType::fp16: return sum_rows<DataType::fp16, first>(sum, group, begin, count);
    case DataType::fp32: return sum_rows<DataType::fp32, first>(sum, group, begin, count);
    case DataType::u8: return;
  }
}

// The callers leave no empty group at the front.
template <DataType out_type>
void reduce(char* out, const ReduceGroup* groups, const ReduceGroup* end, size_t length, bool stream) {
  alignas(kLine) float total[kBlock];
  alignas(kLine) float sum[kBlock];
  for (size_t begin = 0; begin < length; begin += kBlock) {
    const size_t count = length - begin < kBlock ? length - begin : kBlock;
    sum_group<true>(total, *groups, begin, count);
    for (const ReduceGroup* group = groups + 1; group != end; ++group) {
      if (group->count == 0) continue;
      if (group->count == 1) {  // the sum of one row is that row
        sum_group<false>(total, *group, begin, count);
        continue;
      }
      sum_group<true>(sum, *group, begin, count);
      for (size_t i = 0; i < count; i += kLanes) {
        _mm512_store_ps(total + i, _mm512_add_ps(_mm512_load_ps(total + i), _mm512_load_ps(sum + i)));
      }
    }
    store<out_type>(out + begin * kSize<out_type>, total, count, stream);
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
