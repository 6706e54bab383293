// Seeds of randomized tests: printed with every failure, and settable to repeat it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace railhead::kernels::test {

inline uint64_t seed() {
  static const uint64_t value = [] {
    const char* wish = std::getenv("RAILHEAD_TEST_SEED");
    return wish != nullptr ? std::strtoull(wish, nullptr, 10) : uint64_t{std::random_device{}()};
  }();
  return value;
}

// For SCOPED_TRACE.
inline std::string seed_text() {
  return "repeat with RAILHEAD_TEST_SEED=" + std::to_string(seed());
}

// Uniform in [low, high].
inline uint32_t pick(std::mt19937_64& random, uint32_t low, uint32_t high) {
  return std::uniform_int_distribution<uint32_t>(low, high)(random);
}

}  // namespace railhead::kernels::test
