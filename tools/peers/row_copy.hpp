// Copies of one row: by the C library, and with stores that bypass the cache.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstring>

namespace railhead::peers {

inline constexpr std::size_t kStreamBytes = 64;  // destinations and sizes of stream_row are multiples of this

inline void copy_row(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

// Ordered before later stores only by stream_fence().
inline void stream_row(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kStreamBytes) {
#ifdef __AVX512F__
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
#else
    for (std::size_t j = i; j < i + kStreamBytes; j += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + j), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + j)));
    }
#endif
  }
}

inline void stream_fence() {
  _mm_sfence();
}

}  // namespace railhead::peers
