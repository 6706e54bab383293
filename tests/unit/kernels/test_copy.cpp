#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "kernels/host/copy.hpp"
#include "kernels/host/copy_paths.hpp"
#include "kernels/host/cpu.hpp"
#include "tests/unit/kernels/random.hpp"

namespace railhead::kernels {
namespace {

constexpr char kCanary = 0x55;
constexpr size_t kMargin = 128;

// A destination at a given distance from a line boundary, with canaries around it.
class Target {
 public:
  Target(size_t misalignment, size_t bytes) : bytes_(bytes), memory_(bytes + 3 * kMargin, kCanary) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data() + kMargin);
    row_ = memory_.data() + kMargin + (64 - address % 64) % 64 + misalignment;
  }
  [[nodiscard]] char* row() { return row_; }
  [[nodiscard]] bool holds(const char* expected) const {
    return std::equal(row_, row_ + bytes_, expected) && all_canary(memory_.data(), row_) &&
           all_canary(row_ + bytes_, memory_.data() + memory_.size());
  }

 private:
  static bool all_canary(const char* begin, const char* end) {
    return std::all_of(begin, end, [](char c) { return c == kCanary; });
  }
  size_t bytes_;
  std::vector<char> memory_;
  char* row_;
};

std::vector<char> random_bytes(std::mt19937_64& random, size_t count) {
  std::vector<char> bytes(count);
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

using Copy = std::function<void(void*, const void*, size_t)>;

void expect_copies(const Copy& copy) {
  SCOPED_TRACE(test::seed_text());
  std::mt19937_64 random(test::seed());
  const std::vector<char> source = random_bytes(random, 4096);
  for (const size_t bytes : {0u, 1u, 15u, 63u, 64u, 65u, 127u, 256u, 319u, 575u, 1000u, 2048u}) {
    for (size_t to = 0; to < 64; to += (bytes < 400 ? 1 : 7)) {
      for (const size_t from : {size_t{0}, size_t{1}, size_t{16}, size_t{63}, to}) {
        Target target(to, bytes);
        copy(target.row(), source.data() + from, bytes);
        ASSERT_TRUE(target.holds(source.data() + from)) << bytes << " bytes, from " << from << " to " << to;
      }
    }
  }
}

TEST(Copy, CopyRowAtAllAlignments) {
  for (const StoreMode mode : {StoreMode::temporal, StoreMode::non_temporal}) {
    expect_copies([mode](void* dst, const void* src, size_t bytes) {
      copy_row(dst, src, bytes, mode);
      fence();
    });
  }
}

TEST(Copy, ZeroRowsAtAllAlignments) {
  const std::vector<char> zeros(2048, 0);
  for (const StoreMode mode : {StoreMode::temporal, StoreMode::non_temporal}) {
    for (const size_t bytes : {0u, 1u, 63u, 64u, 65u, 200u, 2048u}) {
      for (size_t to = 0; to < 64; ++to) {
        Target target(to, bytes);
        zero_rows(target.row(), bytes, mode);
        fence();
        ASSERT_TRUE(target.holds(zeros.data())) << bytes << " bytes to " << to;
      }
    }
  }
}

TEST(Copy, MultiReachesEveryDestination) {
  SCOPED_TRACE(test::seed_text());
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < 300; ++round) {
    const size_t bytes = test::pick(random, 0, 3000);
    const size_t from = test::pick(random, 0, 64);
    const std::vector<char> source = random_bytes(random, bytes + from);
    const bool aligned_alike = round % 2 == 0;
    const size_t alignment = test::pick(random, 0, 63);
    std::vector<Target> targets;
    std::vector<void*> rows;
    const size_t count = test::pick(random, 0, 20);
    targets.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      targets.emplace_back(aligned_alike ? alignment : test::pick(random, 0, 63), bytes);
      rows.push_back(targets.back().row());
    }
    const StoreMode mode = test::pick(random, 0, 1) == 0 ? StoreMode::temporal : StoreMode::non_temporal;
    copy_row_multi(rows.data(), count, source.data() + from, bytes, mode);
    fence();
    for (const Target& target : targets) ASSERT_TRUE(target.holds(source.data() + from)) << "round " << round;
  }
}

#if defined(__x86_64__)
TEST(Copy, Avx512AtAllAlignments) {
  if (detect_simd() != SimdLevel::avx512) GTEST_SKIP() << "no AVX-512";
  expect_copies([](void* dst, const void* src, size_t bytes) {
    avx512::stream_row(dst, src, bytes);
    fence();
  });
  expect_copies([](void* dst, const void* src, size_t bytes) {
    avx512::stream_row_multi(&dst, 1, src, bytes);
    fence();
  });
}
#endif

}  // namespace
}  // namespace railhead::kernels
