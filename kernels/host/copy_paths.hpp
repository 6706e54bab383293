// The implementations behind copy.hpp; only copy.cpp and the tests name them. The AVX-512 ones stream: temporal copies
// are memcpy on every level, which measured as fast as our own loop.
#pragma once

#include <cstddef>

namespace railhead::kernels::avx512 {

void stream_row(void* dst, const void* src, size_t bytes);
void stream_row_multi(void* const* dsts, size_t count, const void* src, size_t bytes);
void stream_zero(void* dst, size_t bytes);

}  // namespace railhead::kernels::avx512
