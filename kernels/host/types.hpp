// Element types of payload and combine, and their exact scalar conversions.
//
// Conversions round to nearest even, keep subnormals and infinities, and overflow to infinity. A NaN always becomes the
// one positive quiet NaN of the type (fp32 7fc00000, bf16 7fc0, fp16 7e00): processors differ in which operand's NaN
// survives an addition, so keeping a payload could not give the same bits everywhere. They use integer arithmetic only
// and so do not depend on the floating-point mode of the thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace railhead::kernels {

enum class DataType : uint8_t { u8, bf16, fp16, fp32 };  // u8: raw bytes, moved but never reduced

constexpr size_t size_of(DataType type) {
  switch (type) {
    case DataType::u8: return 1;
    case DataType::bf16:
    case DataType::fp16: return 2;
    case DataType::fp32: return 4;
  }
  return 0;
}

constexpr bool is_float(DataType type) {
  return type == DataType::bf16 || type == DataType::fp16 || type == DataType::fp32;
}

constexpr uint32_t kNanBits = 0x7fc00000;

constexpr float fp32_from_bf16(uint16_t value) {
  return std::bit_cast<float>(uint32_t{value} << 16);
}

constexpr float fp32_from_fp16(uint16_t value) {
  const uint32_t sign = (value & 0x8000u) << 16;
  const uint32_t magnitude = value & 0x7fffu;
  if (magnitude > 0x7c00) return std::bit_cast<float>(kNanBits);
  if (magnitude == 0x7c00) return std::bit_cast<float>(sign | 0x7f800000);
  if (magnitude >= 0x0400) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  if (magnitude == 0) return std::bit_cast<float>(sign);
  // Subnormal: magnitude x 2^-24, its leading bit becomes the hidden one.
  const int shift = std::countl_zero(magnitude) - 8;
  const auto exponent = static_cast<uint32_t>(126 - shift);
  return std::bit_cast<float>(sign | (((magnitude << shift) & 0x007fffff) + (exponent << 23)));
}

// The same value; every NaN becomes kNanBits.
constexpr float canonical(float value) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffff;
  return magnitude > 0x7f800000 ? std::bit_cast<float>(kNanBits) : value;
}

constexpr uint16_t bf16_from_fp32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(canonical(value));
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

constexpr uint16_t fp16_from_fp32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7e00;
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // 65520, halfway to 2^16, and above
  if (magnitude < 0x33000000) return static_cast<uint16_t>(sign);            // below half of the least subnormal
  if (magnitude < 0x38800000) {                                              // below 2^-14: a subnormal result
    const uint32_t significand = (magnitude & 0x007fffff) | 0x00800000;
    const uint32_t shift = 126 - (magnitude >> 23);
    const uint32_t half = (1u << (shift - 1)) - 1;
    return static_cast<uint16_t>(sign | ((significand + half + ((significand >> shift) & 1)) >> shift));
  }
  const uint32_t rebiased = magnitude - (112u << 23);
  return static_cast<uint16_t>(sign | ((rebiased + 0x0fff + ((rebiased >> 13) & 1)) >> 13));
}

}  // namespace railhead::kernels
