#include "tests/reference/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace railhead::reference {
namespace {

template <class Word>
Word word_at(const std::byte* data, std::size_t index) {
  Word word;
  std::memcpy(&word, data + index * sizeof(Word), sizeof(Word));
  return word;
}

std::uint32_t element_bits(NumberType type, const std::byte* data, std::size_t index) {
  switch (type) {
    case NumberType::raw: return word_at<std::uint8_t>(data, index);
    case NumberType::fp32: return word_at<std::uint32_t>(data, index);
    default: return word_at<std::uint16_t>(data, index);
  }
}

bool is_quiet_nan(NumberType type, std::uint32_t bits) {
  switch (type) {
    case NumberType::bf16: return (bits & 0x7fc0u) == 0x7fc0u;
    case NumberType::fp16: return (bits & 0x7e00u) == 0x7e00u;
    case NumberType::fp32: return (bits & 0x7fc00000u) == 0x7fc00000u;
    default: return false;
  }
}

std::string show(NumberType type, std::span<const std::byte> data, std::size_t index) {
  char text[64];
  const std::uint32_t bits = element_bits(type, data.data(), index);
  const double value = type == NumberType::raw ? bits : static_cast<double>(load(type, data.data(), index));
  std::snprintf(text, sizeof text, "%.9g (0x%0*x)", value, static_cast<int>(2 * size_of(type)), bits);
  return text;
}

}  // namespace

std::size_t size_of(NumberType type) {
  return type == NumberType::raw ? 1 : type == NumberType::fp32 ? 4 : 2;
}

std::string name_of(NumberType type) {
  constexpr const char* kNames[] = {"raw", "bf16", "fp16", "fp32"};
  return kNames[static_cast<std::size_t>(type)];
}

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

float fp16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const int exponent = (bits >> 10) & 31;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  // mantissa * 2^-24 for subnormals, (1024 + mantissa) * 2^(exponent - 25) else.
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                        : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto upper = static_cast<std::uint16_t>(bits >> 16);
  if (std::isnan(value)) return static_cast<std::uint16_t>(upper | 0x0040u);
  const std::uint32_t lower = bits & 0xffffu;
  const bool up = lower > 0x8000u || (lower == 0x8000u && (upper & 1u) != 0);
  return static_cast<std::uint16_t>(upper + (up ? 1 : 0));  // a carry into the exponent is right, up to infinity
}

std::uint16_t float_to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u | ((bits >> 13) & 0x3ffu));
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);  // halfway beyond the largest, 65504
  // The spacing of fp16 numbers at this magnitude is 2^(exponent - 10).
  const int exponent = magnitude < 0x1p-14f ? -14 : std::ilogb(magnitude);
  const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // 1024 steps are the implicit leading one: adding the steps to the exponent field carries as it should.
  return static_cast<std::uint16_t>(sign | ((static_cast<std::uint32_t>(exponent + 14) << 10) + steps));
}

float load(NumberType type, const std::byte* data, std::size_t index) {
  switch (type) {
    case NumberType::bf16: return bf16_to_float(word_at<std::uint16_t>(data, index));
    case NumberType::fp16: return fp16_to_float(word_at<std::uint16_t>(data, index));
    default: return word_at<float>(data, index);
  }
}

void store(NumberType type, std::byte* data, std::size_t index, float value) {
  if (type == NumberType::fp32) {
    if (std::isnan(value)) value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | 0x00400000u);
    std::memcpy(data + index * 4, &value, 4);
    return;
  }
  const std::uint16_t word = type == NumberType::bf16 ? float_to_bf16(value) : float_to_fp16(value);
  std::memcpy(data + index * 2, &word, 2);
}

std::optional<std::string> first_difference(NumberType type, std::span<const std::byte> expected,
                                            std::span<const std::byte> actual) {
  if (expected.size() != actual.size()) {
    return "expected " + std::to_string(expected.size()) + " bytes, got " + std::to_string(actual.size());
  }
  if (std::ranges::equal(expected, actual)) return std::nullopt;  // the usual case, at the speed of memory
  for (std::size_t i = 0; i < expected.size() / size_of(type); ++i) {
    const std::uint32_t want = element_bits(type, expected.data(), i);
    const std::uint32_t have = element_bits(type, actual.data(), i);
    if (want == have || (is_quiet_nan(type, want) && is_quiet_nan(type, have))) continue;
    return "element " + std::to_string(i) + ": expected " + show(type, expected, i) + ", got " + show(type, actual, i);
  }
  return std::nullopt;
}

}  // namespace railhead::reference
