// Random groups and routings, uneven and interleaved, with unused slots and repeated ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/plan/placement.hpp"
#include "kernels/plan/plan.hpp"
#include "tests/unit/kernels/random.hpp"

namespace railhead::kernels::test {

inline ExpertMap random_map(std::mt19937_64& random) {
  const uint32_t ranks = pick(random, 1, 12);
  const uint32_t domains = pick(random, 1, std::min(ranks, 4u));
  std::vector<uint16_t> domain_of(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    domain_of[r] = static_cast<uint16_t>(r < domains ? r : pick(random, 0, domains - 1));
  }
  std::shuffle(domain_of.begin(), domain_of.end(), random);
  const uint32_t experts = pick(random, 1, 37);
  std::vector<uint32_t> rank_of;
  if (pick(random, 0, 1) == 1) {
    for (uint32_t e = 0; e < experts; ++e) rank_of.push_back(pick(random, 0, ranks - 1));
  }
  return ExpertMap::create(experts, domain_of, rank_of).value();
}

struct RoutingData {
  std::vector<int64_t> wide;
  std::vector<int32_t> narrow;
  std::vector<float> weights;
  Routing routing;

  [[nodiscard]] int64_t id(uint32_t token, uint32_t slot) const { return wide[token * routing.id_pitch + slot]; }
  [[nodiscard]] float weight(uint32_t token, uint32_t slot) const {
    return routing.weights == nullptr ? 1.0F : weights[token * routing.weight_pitch + slot];
  }
};

// Fills `data`; its routing points into it, so it must not move afterwards.
inline void random_routing(std::mt19937_64& random, uint32_t experts, uint32_t tokens, RoutingData& data) {
  Routing& routing = data.routing;
  routing.tokens = tokens;
  routing.top_k = pick(random, 1, pick(random, 0, 4) == 0 ? 70 : 9);
  routing.id_pitch = routing.top_k + pick(random, 0, 3);
  routing.weight_pitch = routing.top_k + pick(random, 0, 3);
  // Between tokens lies what must not be read.
  data.wide.assign(tokens * routing.id_pitch, 1 << 30);
  data.weights.assign(tokens * routing.weight_pitch, -1e30F);
  for (uint32_t t = 0; t < tokens; ++t) {
    const bool empty_token = pick(random, 0, 9) == 0;
    for (uint32_t k = 0; k < routing.top_k; ++k) {
      const bool unused = empty_token || pick(random, 0, 5) == 0;
      data.wide[t * routing.id_pitch + k] = unused ? -1 : int64_t{pick(random, 0, experts - 1)};
      data.weights[t * routing.weight_pitch + k] = std::uniform_real_distribution<float>(-1, 1)(random);
    }
  }
  data.narrow.assign(data.wide.begin(), data.wide.end());
  routing.id_type = pick(random, 0, 1) == 0 ? IdType::int32 : IdType::int64;
  routing.ids = routing.id_type == IdType::int32 ? static_cast<const void*>(data.narrow.data()) : data.wide.data();
  routing.weights = pick(random, 0, 3) == 0 ? nullptr : data.weights.data();
}

}  // namespace railhead::kernels::test
