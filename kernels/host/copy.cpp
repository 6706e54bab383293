#include "kernels/host/copy.hpp"

#include <atomic>
#include <cstring>

#include "kernels/host/copy_paths.hpp"
#include "kernels/host/cpu.hpp"

namespace railhead::kernels {
namespace {

// Without AVX-512 the mode is ignored: memcpy is right everywhere.
bool streams(StoreMode mode) {
  return mode == StoreMode::non_temporal && simd_level() == SimdLevel::avx512;
}

constexpr uint64_t kNonTemporalBytes = 16U << 20;

}  // namespace

StoreMode store_mode_for(uint64_t bytes) {
  return bytes > kNonTemporalBytes ? StoreMode::non_temporal : StoreMode::temporal;
}

void copy_row(void* dst, const void* src, size_t bytes, StoreMode mode) {
  if (bytes == 0) return;
#if defined(__x86_64__)
  if (streams(mode)) return avx512::stream_row(dst, src, bytes);
#endif
  std::memcpy(dst, src, bytes);
}

void copy_row_multi(void* const* dsts, size_t count, const void* src, size_t bytes, StoreMode mode) {
  if (bytes == 0) return;
#if defined(__x86_64__)
  if (streams(mode)) return avx512::stream_row_multi(dsts, count, src, bytes);
#endif
  // The first copy brings the row into the cache, the others read it there.
  for (size_t i = 0; i < count; ++i) std::memcpy(dsts[i], src, bytes);
}

void zero_rows(void* dst, size_t bytes, StoreMode mode) {
  if (bytes == 0) return;
#if defined(__x86_64__)
  if (streams(mode)) return avx512::stream_zero(dst, bytes);
#endif
  std::memset(dst, 0, bytes);
}

void fence() {
#if defined(__x86_64__)
  // seq_cst fences alone would not do: the C++ memory model does not know non-temporal stores.
  __builtin_ia32_sfence();
#endif
  // Release: orders the plain stores of the rows before the counter that announces them.
  std::atomic_thread_fence(std::memory_order_release);
}

}  // namespace railhead::kernels
