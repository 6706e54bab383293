// Small cases that the tests of the model share.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/reference/model.hpp"

namespace railhead::reference {

inline Bytes pack(NumberType type, const std::vector<float>& values) {
  Bytes out(values.size() * size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) store(type, out.data(), i, values[i]);
  return out;
}

inline std::vector<float> unpack(NumberType type, const Bytes& bytes) {
  std::vector<float> out(bytes.size() / size_of(type));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = load(type, bytes.data(), i);
  return out;
}

// One element per row: token t of rank r is the number 100 r + t.
inline Case numbered_case(std::uint32_t ranks, std::uint32_t experts, std::uint32_t top_k, Layout layout,
                          const std::vector<std::vector<std::int64_t>>& ids) {
  Case test;
  test.domain_of_rank.assign(ranks, 0);
  test.rank_of_expert = default_rank_of_expert(experts, ranks);
  test.top_k = top_k;
  test.hidden = 1;
  test.type = NumberType::fp32;
  test.layout = layout;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    RankInput input;
    input.ids = ids[rank];
    input.tokens = static_cast<std::uint32_t>(input.ids.size() / top_k);
    std::vector<float> values;
    for (std::uint32_t token = 0; token < input.tokens; ++token)
      values.push_back(static_cast<float>(100 * rank + token));
    input.x = pack(NumberType::fp32, values);
    test.inputs.push_back(input);
  }
  return test;
}

}  // namespace railhead::reference
