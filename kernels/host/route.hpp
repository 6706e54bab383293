// The routing of one dispatch as one rank keeps it: what its combine, and a cached dispatch, need again.
#pragma once

#include <cstdint>
#include <vector>

#include "ipc/wire.hpp"
#include "kernels/plan/bases.hpp"
#include "kernels/plan/placement.hpp"
#include "kernels/plan/plan.hpp"

namespace railhead::kernels {

// One row of a foreign token in this domain, resolved: where combine finds it.
struct ForwardTerm {
  std::uint32_t row;
  std::uint16_t local_rank;
  std::uint16_t reserved;
  float weight;
};

// The foreign tokens of one (home, channel) that this rank forwards, in the home's order.
struct ForwardTokens {
  struct Token {
    std::uint32_t token;
    std::uint32_t count;  // terms
  };
  std::vector<Token> tokens;
  std::vector<ForwardTerm> terms;

  void clear() {
    tokens.clear();
    terms.clear();
  }
};

struct Route {
  std::uint64_t op = 0;
  ipc::Layout layout = ipc::Layout::rank;
  std::uint32_t align = 1;
  std::uint32_t topk = 0;  // slots per token of this call
  Plan plan;
  RankBases rank_bases;                 // layout rank
  ExpertBases expert_bases;             // layout expert
  std::vector<ForwardTokens> forwards;  // by as_forwarder ring

  // Rows of a local rank's output, and how many of them are not padding.
  [[nodiscard]] std::uint32_t output_rows(std::uint32_t local_rank) const {
    return layout == ipc::Layout::rank ? rank_bases.rows(local_rank) : expert_bases.padded_rows(local_rank);
  }
  [[nodiscard]] std::uint32_t received_rows(std::uint32_t local_rank) const {
    return layout == ipc::Layout::rank ? rank_bases.rows(local_rank) : expert_bases.rows(local_rank);
  }
};

}  // namespace railhead::kernels
