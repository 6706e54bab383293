// Which instructions the host kernels use.
#pragma once

#include <cstdint>
#include <string_view>

#include "ipc/status.hpp"

namespace railhead::kernels {

enum class SimdLevel : uint8_t { portable, avx512 };

// What this processor can run (avx512 means F, BW and VL, with the operating system saving their state).
SimdLevel detect_simd();

// "portable" or "avx512"; empty means what the processor can run. Fails with invalid_argument on another word,
// unsupported when the processor lacks it.
Result<SimdLevel> choose_simd(std::string_view wish);

// The level in use: RAILHEAD_SIMD as read at the first call, or what the processor can run when the variable is unset
// or choose_simd refuses it. All levels give the same bits.
SimdLevel simd_level();

}  // namespace railhead::kernels
