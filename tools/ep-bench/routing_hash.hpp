// Fixed hash functions of the routing sources. They are part of what a seed means: changing one changes every figure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace railhead::bench {

// The finisher of splitmix64: a bijection on 64-bit words in which every input bit moves every output bit.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

constexpr std::uint64_t hash_words(std::initializer_list<std::uint64_t> words) {
  std::uint64_t state = 0;
  for (const std::uint64_t word : words) state = mix(state ^ word);
  return state;
}

// FNV-1a.
constexpr std::uint64_t hash_text(std::string_view text) {
  std::uint64_t state = 0xcbf29ce484222325u;
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return state;
}

// Uniform in (0, 1): never 0, so that its logarithm is finite.
constexpr double unit_interval(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

// A counter-based generator: cheap to seed, which happens once per (rank, round).
class HashRandom {
 public:
  explicit constexpr HashRandom(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t next() { return mix(state_ += 0x632be59bd9b4e019u); }
  constexpr double next_unit() { return unit_interval(next()); }
  // Uniform in [0, limit), limit > 0; the bias of the multiplication is below limit / 2^64.
  constexpr std::uint64_t below(std::uint64_t limit) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * limit) >> 64);
  }

 private:
  std::uint64_t state_;
};

}  // namespace railhead::bench
