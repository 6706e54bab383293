#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/reference/numbers.hpp"
#include "tests/unit/reference/cases.hpp"

namespace railhead::reference {
namespace {

TEST(Numbers, EveryHalfValueSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = fp16_to_float(half);
    const std::uint16_t quiet = std::isnan(wide) ? 0x0200 : 0;
    ASSERT_EQ(float_to_fp16(wide), half | quiet) << std::hex << bits;
    const float brain = bf16_to_float(half);
    const std::uint16_t quiet_brain = std::isnan(brain) ? 0x0040 : 0;
    ASSERT_EQ(float_to_bf16(brain), half | quiet_brain) << std::hex << bits;
  }
}

TEST(Numbers, KnownHalfValues) {
  EXPECT_EQ(fp16_to_float(0x3c00), 1.0f);
  EXPECT_EQ(fp16_to_float(0xc000), -2.0f);
  EXPECT_EQ(fp16_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(fp16_to_float(0x0400), 0x1p-14f);
  EXPECT_EQ(fp16_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(fp16_to_float(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(fp16_to_float(0x8000)));
  EXPECT_EQ(bf16_to_float(0x3f80), 1.0f);
}

TEST(Numbers, HalfwayCasesGoToTheEvenNeighbour) {
  for (std::uint16_t low = 0; low < 0x7bff; ++low) {  // includes all subnormals and every change of exponent
    const float middle = (fp16_to_float(low) + fp16_to_float(static_cast<std::uint16_t>(low + 1))) / 2;
    const std::uint16_t even = low % 2 == 0 ? low : static_cast<std::uint16_t>(low + 1);
    ASSERT_EQ(float_to_fp16(middle), even) << low;
    ASSERT_EQ(float_to_fp16(std::nextafter(middle, 0.0f)), low) << low;
    ASSERT_EQ(float_to_fp16(-std::nextafter(middle, 1e9f)), static_cast<std::uint16_t>(0x8000 | (low + 1))) << low;
  }
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
}

TEST(Numbers, OverflowAndTheSmallestNumbers) {
  EXPECT_EQ(float_to_fp16(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_fp16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_fp16(-1e30f), 0xfc00);
  EXPECT_EQ(float_to_fp16(0x1p-25f), 0x0000);  // halfway to the smallest: even is zero
  EXPECT_EQ(float_to_fp16(0x1.8p-25f), 0x0001);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x00018000u)), 0x0002);  // a subnormal, rounded, not flushed
}

TEST(Numbers, StoredNansAreQuiet) {
  const float signalling = std::bit_cast<float>(0x7f800001u);
  for (const NumberType type : {NumberType::bf16, NumberType::fp16, NumberType::fp32}) {
    const Bytes stored = pack(type, {signalling});
    EXPECT_TRUE(std::isnan(load(type, stored.data(), 0))) << name_of(type);
    const Bytes other = pack(type, {-std::numeric_limits<float>::quiet_NaN()});
    EXPECT_EQ(first_difference(type, stored, other), std::nullopt) << name_of(type);
    EXPECT_NE(first_difference(NumberType::raw, stored, other), std::nullopt) << name_of(type);
  }
}

TEST(Numbers, DifferencesAreNamed) {
  const Bytes want = pack(NumberType::bf16, {1, 2, 0.0f});
  EXPECT_EQ(first_difference(NumberType::bf16, want, want), std::nullopt);
  const auto sign_of_zero = first_difference(NumberType::bf16, want, pack(NumberType::bf16, {1, 2, -0.0f}));
  ASSERT_TRUE(sign_of_zero);
  EXPECT_THAT(*sign_of_zero, testing::HasSubstr("element 2: expected 0 (0x0000), got -0 (0x8000)"));
  const Bytes shorter = pack(NumberType::bf16, {1, 2});
  EXPECT_THAT(first_difference(NumberType::bf16, want, shorter).value_or(""), testing::HasSubstr("expected 6 bytes"));
  const Bytes nan = pack(NumberType::bf16, {1, 2, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_NE(first_difference(NumberType::bf16, nan, want), std::nullopt);
}

}  // namespace
}  // namespace railhead::reference
