#include "tests/reference/random_case.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/reference/dice.hpp"

namespace railhead::reference {
namespace {

constexpr std::uint32_t kSpecialFp32[] = {0x7fc00000u, 0xffc00001u, 0x7f800001u, 0xffbfffffu, 0x7f800000u,
                                          0xff800000u, 0x00000001u, 0x807fffffu, 0x80000000u, 0x00000000u};
constexpr std::uint16_t kSpecialBf16[] = {0x7fc0, 0xffc1, 0x7f81, 0xffbf, 0x7f80, 0xff80, 0x0001, 0x807f, 0x8000, 0x0};
constexpr std::uint16_t kSpecialFp16[] = {0x7e00, 0xfe01, 0x7c01, 0xfdff, 0x7c00, 0xfc00, 0x0001, 0x83ff, 0x8000, 0x0};

template <class Word, std::size_t N>
void put_special(const Word (&specials)[N], std::byte* data, std::size_t index, Dice& random) {
  std::memcpy(data + index * sizeof(Word), &specials[random.below(N)], sizeof(Word));
}

// In (-2, 2), magnitudes from 2^-8 up, all mantissa bits random.
float ordinary_value(Dice& random) {
  const std::uint64_t bits = random.next();
  const auto sign = static_cast<std::uint32_t>(bits & 0x80000000u);
  const auto exponent = static_cast<std::uint32_t>(119 + (bits >> 32) % 9);
  return std::bit_cast<float>(sign | (exponent << 23) | static_cast<std::uint32_t>(bits & 0x7fffffu));
}

std::int64_t pick_expert(const Case& test, const std::int64_t* slots, std::uint32_t slot, const Oddities& odd,
                         Dice& random) {
  if (odd.only_expert >= 0) return odd.only_expert;
  if (slot > 0 && random.chance(odd.repeated_slots)) return slots[random.below(slot)];
  const std::size_t experts = test.rank_of_expert.size();
  auto id = static_cast<std::int64_t>(random.below(experts));
  for (std::size_t tries = 0; tries < experts && std::find(slots, slots + slot, id) != slots + slot; ++tries) {
    id = static_cast<std::int64_t>((static_cast<std::size_t>(id) + 1) % experts);
  }
  return id;
}

void fill_ids(const Case& test, RankInput& input, const Oddities& odd, Dice& random) {
  input.ids.resize(std::size_t{input.tokens} * test.top_k);
  for (std::uint32_t token = 0; token < input.tokens; ++token) {
    std::int64_t* slots = input.ids.data() + std::size_t{token} * test.top_k;
    const bool unused = random.chance(odd.unused_tokens);
    for (std::uint32_t slot = 0; slot < test.top_k; ++slot) {
      const bool skip = unused || random.chance(odd.unused_slots);
      slots[slot] = skip ? -1 : pick_expert(test, slots, slot, odd, random);
    }
  }
}

}  // namespace

Bytes random_values(NumberType type, std::size_t count, std::uint64_t seed, std::uint32_t specials_per_1000) {
  Dice random(seed);
  Bytes out(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    if (type == NumberType::raw) {
      out[i] = static_cast<std::byte>(random.next());
    } else if (!random.chance(specials_per_1000)) {
      store(type, out.data(), i, ordinary_value(random));
    } else if (type == NumberType::fp32) {
      put_special(kSpecialFp32, out.data(), i, random);
    } else {
      put_special(type == NumberType::bf16 ? kSpecialBf16 : kSpecialFp16, out.data(), i, random);
    }
  }
  return out;
}

void fill_random(Case& test, const std::vector<std::uint32_t>& tokens, std::uint64_t seed, const Oddities& odd) {
  Dice random(seed);
  test.inputs.assign(test.ranks(), {});
  for (std::size_t rank = 0; rank < test.ranks(); ++rank) {
    RankInput& input = test.inputs[rank];
    input.tokens = tokens[rank];
    fill_ids(test, input, odd, random);
    input.weights.resize(input.ids.size());
    for (float& weight : input.weights) weight = static_cast<float>(1 + random.below(1u << 20)) * 0x1p-20f;
    input.x = random_values(test.type, std::size_t{input.tokens} * test.hidden, random.next(), odd.special_values);
    input.side = random_values(NumberType::raw, std::size_t{input.tokens} * test.side_bytes, random.next());
  }
}

}  // namespace railhead::reference
