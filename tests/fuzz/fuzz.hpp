// Seeded random bytes for what reads input of others. Seed and count are printed; RAILHEAD_SOAK makes it a long run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace railhead::test {

class Fuzz {
 public:
  explicit Fuzz(const char* what, int quick) : rounds_(quick) {
    std::uint64_t seed = 1;
    if (std::getenv("RAILHEAD_SOAK") != nullptr) {
      rounds_ *= 50;
      seed = std::random_device{}();
    }
    std::printf("fuzz %s: seed %llu, %d rounds\n", what, static_cast<unsigned long long>(seed), rounds_);
    random_.seed(seed);
  }

  [[nodiscard]] int rounds() const { return rounds_; }
  std::uint64_t next() { return random_(); }
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  // What a careless or hostile writer leaves: bits flipped, words of interest put in, or pure noise.
  void damage(std::byte* bytes, std::size_t size) {
    if (size == 0) return;
    static constexpr std::uint32_t kWords[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
    for (std::uint64_t n = 1 + below(6); n > 0; --n) {
      const std::size_t at = below(size);
      switch (below(3)) {
        case 0: bytes[at] ^= static_cast<std::byte>(1U << below(8)); break;
        case 1: bytes[at] = static_cast<std::byte>(next()); break;
        default: {
          const std::uint32_t word = kWords[below(std::size(kWords))];
          for (std::size_t i = 0; i < 4 && at + i < size; ++i) bytes[at + i] = static_cast<std::byte>(word >> (8 * i));
        }
      }
    }
  }
  std::vector<std::byte> noise(std::size_t most) {
    std::vector<std::byte> out(below(most));
    for (std::byte& b : out) b = static_cast<std::byte>(next());
    return out;
  }

 private:
  int rounds_;
  std::mt19937_64 random_;
};

}  // namespace railhead::test
