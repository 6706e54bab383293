// Compiled with AVX-512 enabled: use no inline function of a shared header here. The linker keeps one copy of each, and
// if it were this one, processors without AVX-512 would run into it.
#include <immintrin.h>
#include <stdint.h>

#include "kernels/host/copy_paths.hpp"

namespace railhead::kernels::avx512 {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kBlock = 4 * kLine;

__mmask64 first_bytes(size_t bytes) {
  return ~__mmask64{0} >> (kLine - bytes);
}  // bytes in 1..64

// Copies fewer than 64 bytes.
void copy_part(char* dst, const char* src, size_t bytes) {
  if (bytes == 0) return;
  const __mmask64 mask = first_bytes(bytes);
  _mm512_mask_storeu_epi8(dst, mask, _mm512_maskz_loadu_epi8(mask, src));
}

size_t bytes_to_line(const void* pointer) {
  return (0 - reinterpret_cast<uintptr_t>(pointer)) % kLine;
}

void stream_line(char* dst, __m512i value) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(dst), value);
}

// `lines` whole lines to each destination, all line-aligned.
void stream_lines(char* const* dsts, size_t count, size_t offset, const char* src, size_t lines) {
  for (; lines >= 4; lines -= 4, offset += kBlock) {
    const __m512i a = _mm512_loadu_si512(src + offset);
    const __m512i b = _mm512_loadu_si512(src + offset + kLine);
    const __m512i c = _mm512_loadu_si512(src + offset + 2 * kLine);
    const __m512i d = _mm512_loadu_si512(src + offset + 3 * kLine);
    for (size_t i = 0; i < count; ++i) {
      char* dst = dsts[i] + offset;
      stream_line(dst, a);
      stream_line(dst + kLine, b);
      stream_line(dst + 2 * kLine, c);
      stream_line(dst + 3 * kLine, d);
    }
  }
  for (; lines > 0; --lines, offset += kLine) {
    const __m512i value = _mm512_loadu_si512(src + offset);
    for (size_t i = 0; i < count; ++i) stream_line(dsts[i] + offset, value);
  }
}

// Destinations that are aligned alike.
void stream_group(char* const* dsts, size_t count, const char* src, size_t bytes) {
  const size_t to_line = bytes_to_line(dsts[0]);
  const size_t head = to_line < bytes ? to_line : bytes;
  const size_t lines = (bytes - head) / kLine;
  const size_t tail = head + lines * kLine;
  for (size_t i = 0; i < count; ++i) copy_part(dsts[i], src, head);
  stream_lines(dsts, count, head, src, lines);
  for (size_t i = 0; i < count; ++i) copy_part(dsts[i] + tail, src + tail, bytes - tail);
}

}  // namespace

void stream_row(void* dst, const void* src, size_t bytes) {
  char* const out = static_cast<char*>(dst);
  stream_group(&out, 1, static_cast<const char*>(src), bytes);
}

void stream_row_multi(void* const* dsts, size_t count, const void* src, size_t bytes) {
  constexpr size_t kMost = 8;
  for (size_t done = 0; done < count;) {
    char* group[kMost];
    size_t size = 0;
    const size_t to_line = bytes_to_line(dsts[done]);
    while (size < kMost && done < count && bytes_to_line(dsts[done]) == to_line) {
      group[size++] = static_cast<char*>(dsts[done++]);
    }
    stream_group(group, size, static_cast<const char*>(src), bytes);
  }
}

void stream_zero(void* dst, size_t bytes) {
  char* out = static_cast<char*>(dst);
  const size_t to_line = bytes_to_line(out);
  const size_t head = to_line < bytes ? to_line : bytes;
  const __m512i zero = _mm512_setzero_si512();
  if (head > 0) _mm512_mask_storeu_epi8(out, first_bytes(head), zero);
  char* const end = out + bytes;
  for (out += head; end - out >= static_cast<ptrdiff_t>(kLine); out += kLine) stream_line(out, zero);
  if (out < end) _mm512_mask_storeu_epi8(out, first_bytes(static_cast<size_t>(end - out)), zero);
}

}  // namespace railhead::kernels::avx512
