#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/host/types.hpp"
#include "tests/unit/kernels/random.hpp"

namespace railhead::kernels {
namespace {

uint32_t bits_of(float value) {
  return std::bit_cast<uint32_t>(value);
}

TEST(Types, Sizes) {
  EXPECT_EQ(size_of(DataType::u8), 1u);
  EXPECT_EQ(size_of(DataType::bf16), 2u);
  EXPECT_EQ(size_of(DataType::fp16), 2u);
  EXPECT_EQ(size_of(DataType::fp32), 4u);
  EXPECT_FALSE(is_float(DataType::u8));
  EXPECT_TRUE(is_float(DataType::fp16));
}

double fp16_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Types, EveryFiniteFp16WidensExactlyAndComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    if ((bits & 0x7c00) == 0x7c00) continue;
    const auto half = static_cast<uint16_t>(bits);
    ASSERT_EQ(double{fp32_from_fp16(half)}, fp16_value(half)) << bits;
    ASSERT_EQ(fp16_from_fp32(fp32_from_fp16(half)), half);
  }
}

TEST(Types, EveryBf16ButNanComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const bool nan = (bits & 0x7fff) > 0x7f80;
    ASSERT_EQ(bf16_from_fp32(fp32_from_bf16(half)), nan ? 0x7fc0 : half);
  }
}

TEST(Types, SpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(fp16_from_fp32(kInfinity), 0x7c00);
  EXPECT_EQ(fp16_from_fp32(-kInfinity), 0xfc00);
  EXPECT_EQ(fp32_from_fp16(0xfc00), -kInfinity);
  EXPECT_EQ(bf16_from_fp32(-kInfinity), 0xff80);
  EXPECT_EQ(fp16_from_fp32(-0.0F), 0x8000);
  EXPECT_EQ(bf16_from_fp32(-0.0F), 0x8000);
  EXPECT_EQ(bf16_from_fp32(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(fp16_from_fp32(65519.996F), 0x7bff);
  EXPECT_EQ(fp16_from_fp32(65520.0F), 0x7c00);
}

TEST(Types, EveryNanBecomesThePositiveQuietOne) {
  for (const uint32_t nan : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffc00000u, 0x7fa5a5a5u}) {
    const auto value = std::bit_cast<float>(nan);
    EXPECT_EQ(bits_of(canonical(value)), kNanBits);
    EXPECT_EQ(bf16_from_fp32(value), 0x7fc0);
    EXPECT_EQ(fp16_from_fp32(value), 0x7e00);
  }
  EXPECT_EQ(bits_of(fp32_from_fp16(0xfc01)), kNanBits);
}

// The nearest of the two neighbours, the even one when both are as near. Finite values within the range of the type.
template <class Narrow, class Widen>
void expect_nearest_even(float value, Narrow narrow, Widen widen) {
  const uint16_t got = narrow(value);
  const double error = std::abs(double{widen(got)} - double{value});
  for (const int step : {-1, 1}) {
    const auto other = static_cast<uint16_t>(got + step);
    if ((other & 0x8000) != (got & 0x8000)) continue;
    const double other_error = std::abs(double{widen(other)} - double{value});
    if (!(other_error <= error)) continue;
    EXPECT_EQ(other_error, error) << "not the nearest of " << value;
    EXPECT_EQ(got & 1, 0) << "tie not to even: " << value;
  }
}

TEST(Types, NarrowingRoundsToNearestEven) {
  SCOPED_TRACE(test::seed_text());
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 500000; ++i) {
    // Sparse low bits make ties common; the exponent stays in the range of fp16, subnormals and underflow included.
    const auto bits = static_cast<uint32_t>(random());
    const uint32_t exponent = 127 - 27 + (bits >> 8) % 42;
    const uint32_t fraction = (static_cast<uint32_t>(random()) & (0x7fffffu << (random() % 23))) & 0x7fffff;
    const auto value = std::bit_cast<float>((bits & 0x80000000) | exponent << 23 | fraction);
    expect_nearest_even(value, fp16_from_fp32, fp32_from_fp16);
    expect_nearest_even(value, bf16_from_fp32, fp32_from_bf16);
    const auto tiny = std::bit_cast<float>((bits & 0x80000000) | fraction);
    expect_nearest_even(tiny, bf16_from_fp32, fp32_from_bf16);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace railhead::kernels
