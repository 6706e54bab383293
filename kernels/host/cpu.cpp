#include "kernels/host/cpu.hpp"

#include <cstdlib>
#include <string>

namespace railhead::kernels {

SimdLevel detect_simd() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return SimdLevel::avx512;
  }
#endif
  return SimdLevel::portable;
}

Result<SimdLevel> choose_simd(std::string_view wish) {
  if (wish.empty()) return detect_simd();
  if (wish == "portable") return SimdLevel::portable;
  if (wish != "avx512") {
    return fail(Code::invalid_argument,
                "RAILHEAD_SIMD is '" + std::string(wish) + "'; allowed are 'portable' and 'avx512', or leave it unset");
  }
  if (detect_simd() != SimdLevel::avx512) {
    return fail(Code::unsupported, "RAILHEAD_SIMD is 'avx512', but this processor lacks AVX-512 F, BW or VL; unset it");
  }
  return SimdLevel::avx512;
}

const Result<SimdLevel>& configured_simd() {
  static const Result<SimdLevel> configured = [] {
    const char* wish = std::getenv("RAILHEAD_SIMD");
    return choose_simd(wish == nullptr ? "" : wish);
  }();
  return configured;
}

SimdLevel simd_level() {
  static const SimdLevel level = configured_simd().value_or(detect_simd());
  return level;
}

}  // namespace railhead::kernels
