// The implementations behind copy.hpp; only copy.cpp and the tests name them. Temporal copies are memcpy on every
// level.
//
// Why they stream, and several destinations at once (14336-byte rows in order to scattered places, one thread, GB/s
// written): memcpy 8.5, streamed 14; to 2 places memcpy 9.2, one after the other 16.5, at once 21; to 4: 9, 17, 21.5.
// Prefetching the source gained nothing.
#pragma once

#include <cstddef>

namespace railhead::kernels::avx512 {

void stream_row(void* dst, const void* src, size_t bytes);
void stream_row_multi(void* const* dsts, size_t count, const void* src, size_t bytes);
void stream_zero(void* dst, size_t bytes);

}  // namespace railhead::kernels::avx512
