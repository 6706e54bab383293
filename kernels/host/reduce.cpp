#include "kernels/host/reduce.hpp"

#include "kernels/host/cpu.hpp"
#include "kernels/host/reduce_paths.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace railhead::kernels {
namespace {

// Applications switch subnormals off (flush-to-zero) or traps on for their own threads; combine must not notice.
class DefaultFloatMode {
#if defined(__x86_64__)
 public:
  DefaultFloatMode() : saved_(_mm_getcsr()) {
    if ((saved_ & ~kFlags) != kDefault) _mm_setcsr(kDefault);
  }
  ~DefaultFloatMode() {
    if ((saved_ & ~kFlags) != kDefault) _mm_setcsr(saved_);
  }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
  static constexpr unsigned kFlags = 0x3f;      // sticky exception flags
  static constexpr unsigned kDefault = 0x1f80;  // round to nearest, no flushing, no traps
  unsigned saved_;
#endif
};

}  // namespace

void reduce_rows(void* out, DataType out_type, const ReduceGroup* groups, size_t group_count, size_t length,
                 [[maybe_unused]] StoreMode mode) {
  [[maybe_unused]] const DefaultFloatMode guard;
#if defined(__x86_64__)
  if (simd_level() == SimdLevel::avx512) {
    return avx512::reduce_rows(out, out_type, groups, group_count, length, mode == StoreMode::non_temporal);
  }
#endif
  portable::reduce_rows(out, out_type, groups, group_count, length);
}

}  // namespace railhead::kernels
