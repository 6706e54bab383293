#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "kernels/host/cpu.hpp"

namespace railhead::kernels {
namespace {

TEST(Cpu, WishDecidesWithinWhatTheProcessorCanRun) {
  EXPECT_EQ(choose_simd("").value(), detect_simd());
  EXPECT_EQ(choose_simd("portable").value(), SimdLevel::portable);
  const Result<SimdLevel> wide = choose_simd("avx512");
  if (detect_simd() == SimdLevel::avx512) {
    EXPECT_EQ(wide.value(), SimdLevel::avx512);
  } else {
    EXPECT_EQ(wide.error().code(), Code::unsupported);
  }
}

TEST(Cpu, UnknownWordIsNamed) {
  const Result<SimdLevel> level = choose_simd("sse");
  ASSERT_FALSE(level.has_value());
  EXPECT_EQ(level.error().code(), Code::invalid_argument);
  EXPECT_THAT(level.error().message(), testing::HasSubstr("'sse'"));
}

TEST(Cpu, LevelInUseCanRun) {
  EXPECT_LE(simd_level(), detect_simd());
}

// In a process of its own: the variable is read once.
TEST(CpuDeathTest, AWrongVariableIsToldToWhoeverAsks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ask = [] {
    ::setenv("RAILHEAD_SIMD", "sse", 1);
    const Result<SimdLevel>& configured = configured_simd();
    std::fputs(configured ? "none" : configured.error().message().c_str(), stderr);
    ::_exit(simd_level() == detect_simd() ? 0 : 1);
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(0), "RAILHEAD_SIMD is 'sse'");
}

}  // namespace
}  // namespace railhead::kernels
