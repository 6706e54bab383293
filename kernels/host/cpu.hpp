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

// What RAILHEAD_SIMD, as read at the first call, chooses or why it cannot. For whoever can tell the user.
const Result<SimdLevel>& configured_simd();

// The level in use: the configured one, or what the processor can run. All levels give the same bits.
SimdLevel simd_level();

}  // namespace railhead::kernels
