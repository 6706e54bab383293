// Where experts live: expert -> rank -> domain, and the dense numbers that slices and records use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ipc/status.hpp"

namespace railhead::kernels {

// The home of one expert.
struct ExpertHome {
  uint32_t rank;        // rank in the group
  uint32_t on_rank;     // index among the experts of that rank, ascending by expert id
  uint16_t domain;      // domain of the rank
  uint16_t local_rank;  // position of the rank among the ranks of its domain, ascending by rank
  uint16_t dense;       // index among the experts of the domain, ordered by (local_rank, expert id)
  uint16_t reserved = 0;
};

// Immutable after creation; any number of threads may read it.
//
// A `place` orders all experts by (domain, local rank, expert id). The experts of a domain, and those of a rank, are
// contiguous in it: place = first place of the domain + dense.
class ExpertMap {
 public:
  // domain_of_rank[r] is the domain of rank r; domains are 0..N-1 and none is empty. rank_of_expert names the rank of
  // each expert; empty means contiguous blocks, the first E % R ranks hold one expert more. Fails with
  // invalid_argument.
  static Result<ExpertMap> create(uint32_t experts, std::vector<uint16_t> domain_of_rank,
                                  std::span<const uint32_t> rank_of_expert = {});

  [[nodiscard]] uint32_t experts() const { return static_cast<uint32_t>(expert_at_.size()); }
  [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(domain_of_rank_.size()); }
  [[nodiscard]] uint32_t domains() const { return static_cast<uint32_t>(domain_place_.size() - 1); }

  [[nodiscard]] uint16_t domain_of(uint32_t rank) const { return domain_of_rank_[rank]; }
  [[nodiscard]] uint16_t local_rank_of(uint32_t rank) const { return local_rank_[rank]; }

  [[nodiscard]] const ExpertHome& home(uint32_t expert) const { return home_[place_of_[expert]]; }
  [[nodiscard]] const ExpertHome& home_at(uint32_t place) const { return home_[place]; }
  [[nodiscard]] uint32_t place_of(uint32_t expert) const { return place_of_[expert]; }

  // Ranks of a domain, ascending: L_d of them.
  [[nodiscard]] std::span<const uint32_t> ranks_in(uint16_t domain) const {
    return {rank_order_.data() + domain_rank_[domain], domain_rank_[domain + 1] - domain_rank_[domain]};
  }
  // Expert ids of a domain by dense index: E_d of them.
  [[nodiscard]] std::span<const uint32_t> experts_in(uint16_t domain) const {
    return {expert_at_.data() + domain_place_[domain], domain_place_[domain + 1] - domain_place_[domain]};
  }
  // Expert ids of a rank, ascending; empty when the rank holds none.
  [[nodiscard]] std::span<const uint32_t> experts_on(uint32_t rank) const {
    return {expert_at_.data() + rank_place_[rank], rank_experts_[rank]};
  }
  // Dense index of the first expert of a rank (where it would be, for a rank without experts).
  [[nodiscard]] uint32_t first_dense(uint32_t rank) const {
    return rank_place_[rank] - domain_place_[domain_of_rank_[rank]];
  }

 private:
  ExpertMap() = default;
  void number_ranks(uint32_t domains);
  void number_experts(std::span<const uint32_t> rank_of_expert);

  std::vector<uint16_t> domain_of_rank_;
  std::vector<uint16_t> local_rank_;
  std::vector<uint32_t> rank_order_;    // ranks by (domain, rank)
  std::vector<uint32_t> domain_rank_;   // N + 1 offsets into rank_order_
  std::vector<uint32_t> domain_place_;  // N + 1 first places
  std::vector<uint32_t> rank_place_;    // first place of each rank
  std::vector<uint32_t> rank_experts_;  // number of experts of each rank
  std::vector<uint32_t> place_of_;      // by expert id
  std::vector<uint32_t> expert_at_;     // by place
  std::vector<ExpertHome> home_;        // by place
};

}  // namespace railhead::kernels
