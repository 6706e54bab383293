// Random inputs for the model and the product, from a seed: the same seed gives the same case on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/reference/model.hpp"

namespace railhead::reference {

// Shares are per 1000.
struct Oddities {
  std::uint32_t unused_slots = 100;   // a slot is -1
  std::uint32_t unused_tokens = 50;   // all slots of a token are -1
  std::uint32_t repeated_slots = 50;  // a slot names the same expert as one before it
  std::uint32_t special_values = 20;  // elements: NaN patterns (quiet and signalling), infinities, subnormals, -0
  std::int64_t only_expert = -1;      // >= 0: every used slot names this expert
};

// Fills the inputs of a case whose other members are set (domains, expert map, K, H, type, side data): tokens[r]
// tokens for rank r. Ids are distinct inside a token where oddities do not say otherwise and experts suffice.
void fill_random(Case& test, const std::vector<std::uint32_t>& tokens, std::uint64_t seed, const Oddities& odd = {});

// count elements of `type`: small numbers around 1 in size and of both signs, specials as asked; raw: any bytes.
Bytes random_values(NumberType type, std::size_t count, std::uint64_t seed, std::uint32_t specials_per_1000 = 0);

}  // namespace railhead::reference
