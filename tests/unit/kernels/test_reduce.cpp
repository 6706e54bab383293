#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "kernels/host/cpu.hpp"
#include "kernels/host/reduce.hpp"
#include "kernels/host/reduce_paths.hpp"
#include "tests/unit/kernels/random.hpp"

namespace railhead::kernels {
namespace {

constexpr std::array kFloats = {DataType::bf16, DataType::fp16, DataType::fp32};
constexpr char kCanary = 0x55;

float load(DataType type, const char* at) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, size_of(type));
  if (type == DataType::fp32) return std::bit_cast<float>(bits);
  return type == DataType::bf16 ? fp32_from_bf16(static_cast<uint16_t>(bits))
                                : fp32_from_fp16(static_cast<uint16_t>(bits));
}

void store(DataType type, char* at, float value) {
  const uint32_t bits = type == DataType::fp32   ? std::bit_cast<uint32_t>(canonical(value))
                        : type == DataType::bf16 ? bf16_from_fp32(value)
                                                 : fp16_from_fp32(value);
  std::memcpy(at, &bits, size_of(type));
}

// The documented sum, one element at a time. Volatile: each product and sum is rounded where it is written.
float sum_element(const std::vector<ReduceGroup>& groups, size_t i) {
  volatile float total = 0;
  bool any = false;
  for (const ReduceGroup& group : groups) {
    volatile float sum = 0;
    for (size_t term = 0; term < group.count; ++term) {
      volatile float x = load(group.type, static_cast<const char*>(group.rows[term]) + i * size_of(group.type));
      if (group.weights != nullptr) x = group.weights[term] * x;
      sum = term == 0 ? float{x} : float{sum} + float{x};
    }
    if (group.count == 0) continue;
    total = any ? float{total} + float{sum} : float{sum};
    any = true;
  }
  return total;
}

// Random groups over rows at random alignments.
class Case {
 public:
  Case(std::mt19937_64& random, size_t length, bool special) : length_(length) {
    const size_t group_count = test::pick(random, 0, 4);
    rows_.resize(group_count);
    weights_.resize(group_count);
    for (size_t g = 0; g < group_count; ++g) add_group(random, g, special);
    out_type = kFloats[test::pick(random, 0, 2)];
    out_misalignment = test::pick(random, 0, 1) == 0 ? 0 : test::pick(random, 1, 63);
  }

  [[nodiscard]] const std::vector<ReduceGroup>& groups() const { return groups_; }
  [[nodiscard]] std::vector<char> expected() const {
    std::vector<char> out(length_ * size_of(out_type));
    for (size_t i = 0; i < length_; ++i) store(out_type, out.data() + i * size_of(out_type), sum_element(groups_, i));
    return out;
  }
  // Runs `reduce(out)` on an output with canaries and returns what it wrote.
  template <class Reduce>
  [[nodiscard]] std::vector<char> run(Reduce reduce) const {
    const size_t bytes = length_ * size_of(out_type);
    std::vector<char> memory(bytes + 256, kCanary);
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    char* out = memory.data() + 64 + (64 - address % 64) % 64 + out_misalignment;
    reduce(out);
    fence();
    for (char* at = memory.data(); at < memory.data() + memory.size(); ++at) {
      if (at == out) at += bytes;
      EXPECT_EQ(*at, kCanary) << "written outside the row";
    }
    return {out, out + bytes};
  }

  DataType out_type;
  size_t out_misalignment;

 private:
  void add_group(std::mt19937_64& random, size_t g, bool special) {
    const DataType type = kFloats[test::pick(random, 0, 2)];
    const size_t count = test::pick(random, 0, 9);
    for (size_t term = 0; term < count; ++term) {
      storage_.emplace_back(length_ * size_of(type) + 64);
      char* row = storage_.back().data() + test::pick(random, 0, 63);
      for (size_t i = 0; i < length_; ++i) fill(random, type, row + i * size_of(type), special);
      rows_[g].push_back(row);
      weights_[g].push_back(special ? any_float(random) : std::uniform_real_distribution<float>(-2, 2)(random));
    }
    const bool weighted = test::pick(random, 0, 2) != 0;
    groups_.push_back({rows_[g].data(), weighted ? weights_[g].data() : nullptr, count, type});
  }

  static float any_float(std::mt19937_64& random) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr std::array kSpecial = {0.0F, -0.0F, kInfinity, -kInfinity, 1.0F, 1e-45F, -1e-40F, 3e38F};
    if (test::pick(random, 0, 1) == 0) return kSpecial[test::pick(random, 0, kSpecial.size() - 1)];
    return std::bit_cast<float>(static_cast<uint32_t>(random()));
  }

  static void fill(std::mt19937_64& random, DataType type, char* at, bool special) {
    if (!special) return store(type, at, std::normal_distribution<float>()(random));
    // Half of them any bits at all: NaN payloads, infinities and subnormals of this type.
    const uint64_t bits = random();
    if (test::pick(random, 0, 1) == 0) {
      std::memcpy(at, &bits, size_of(type));
    } else {
      store(type, at, any_float(random));
    }
  }

  size_t length_;
  std::vector<std::vector<char>> storage_;
  std::vector<std::vector<const void*>> rows_;
  std::vector<std::vector<float>> weights_;
  std::vector<ReduceGroup> groups_;
};

void expect_all_paths_equal(const Case& test) {
  const std::vector<ReduceGroup>& groups = test.groups();
  const size_t length = test.expected().size() / size_of(test.out_type);
  const std::vector<char> expected = test.expected();
  EXPECT_EQ(
      test.run([&](char* out) { portable::reduce_rows(out, test.out_type, groups.data(), groups.size(), length); }),
      expected)
      << "portable";
  EXPECT_EQ(test.run([&](char* out) {
    reduce_rows(out, test.out_type, groups.data(), groups.size(), length, StoreMode::non_temporal);
  }),
            expected)
      << "chosen at run time";
#if defined(__x86_64__)
  if (detect_simd() != SimdLevel::avx512) return;
  for (const bool stream : {false, true}) {
    EXPECT_EQ(test.run([&](char* out) {
      avx512::reduce_rows(out, test.out_type, groups.data(), groups.size(), length, stream);
    }),
              expected)
        << "avx512, stream " << stream;
  }
#endif
}

TEST(Reduce, RandomCasesMatchTheReferenceOnAllPaths) {
  SCOPED_TRACE(test::seed_text());
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < 600; ++round) {
    const bool special = round % 2 == 1;
    const size_t length = test::pick(random, 0, 3) == 0 ? test::pick(random, 500, 1300) : test::pick(random, 0, 300);
    SCOPED_TRACE("round " + std::to_string(round) + ", length " + std::to_string(length));
    expect_all_paths_equal(Case(random, length, special));
    if (HasFailure()) return;
  }
}

float reduce_one(const std::vector<ReduceGroup>& groups) {
  float out = 99;
  reduce_rows(&out, DataType::fp32, groups.data(), groups.size(), 1, StoreMode::temporal);
  return out;
}

TEST(Reduce, SumsStartWithTheFirstTermNotWithZero) {
  const float minus_zero = -0.0F;
  const void* row = &minus_zero;
  const float one = 1;
  EXPECT_TRUE(std::signbit(reduce_one({{&row, &one, 1, DataType::fp32}})));
  EXPECT_TRUE(std::signbit(reduce_one({{&row, nullptr, 1, DataType::fp32}, {&row, &one, 1, DataType::fp32}})));
}

TEST(Reduce, NothingToSumIsPlusZero) {
  EXPECT_EQ(std::bit_cast<uint32_t>(reduce_one({})), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(reduce_one({{nullptr, nullptr, 0, DataType::fp32}})), 0u);
}

TEST(Reduce, MultiplyAndAddRoundApart) {
  // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: the product alone rounds the last part away, a fused one would keep it.
  const float x = 1 + std::ldexp(1.0F, -12);
  const float minus = -(1 + std::ldexp(1.0F, -11));
  const std::array<const void*, 2> rows = {&minus, &x};
  const std::array<float, 2> weights = {1, x};
  EXPECT_EQ(reduce_one({{rows.data(), weights.data(), 2, DataType::fp32}}), 0.0F);
}

#if defined(__x86_64__)
TEST(Reduce, FloatingPointModeOfTheThreadDoesNotMatterAndIsKept) {
  const float subnormal = 1e-40F;
  const void* row = &subnormal;
  const float one = 1;
  const unsigned before = _mm_getcsr();
  const unsigned flushing = before | 0x8040 | 0x6000;  // flush results and inputs, round towards zero
  _mm_setcsr(flushing);
  const float result = reduce_one({{&row, &one, 1, DataType::fp32}});
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(std::bit_cast<uint32_t>(result), std::bit_cast<uint32_t>(subnormal));
  EXPECT_EQ(after, flushing);
}
#endif

}  // namespace
}  // namespace railhead::kernels
