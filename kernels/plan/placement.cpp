#include "kernels/plan/placement.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/plan/slot_order.hpp"

namespace railhead::kernels {
namespace {

constexpr uint32_t kMaxRanks = 65535;          // local ranks travel as 16 bits
constexpr uint32_t kMaxDomainExperts = 65536;  // dense expert indices travel as 16 bits

Status check_domains(std::span<const uint16_t> domain_of_rank, uint32_t domains) {
  std::vector<bool> seen(domains, false);
  for (const uint16_t domain : domain_of_rank) seen[domain] = true;
  const auto hole = std::find(seen.begin(), seen.end(), false);
  if (hole == seen.end()) return {};
  return {Code::invalid_argument, "domain " + std::to_string(hole - seen.begin()) + " of " + std::to_string(domains) +
                                      " has no rank; number the domains 0.." + std::to_string(domains - 1) +
                                      " without holes"};
}

std::vector<uint32_t> contiguous_blocks(uint32_t experts, uint32_t ranks) {
  std::vector<uint32_t> rank_of(experts);
  const uint32_t base = experts / ranks;
  const uint32_t larger = experts % ranks;
  uint32_t expert = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint32_t count = base + (rank < larger ? 1 : 0);
    std::fill_n(rank_of.begin() + expert, count, rank);
    expert += count;
  }
  return rank_of;
}

Status check_map(std::span<const uint32_t> rank_of_expert, uint32_t experts, uint32_t ranks) {
  if (rank_of_expert.size() != experts) {
    return {Code::invalid_argument, "the expert map has " + std::to_string(rank_of_expert.size()) +
                                        " entries, the group has " + std::to_string(experts) + " experts"};
  }
  for (uint32_t expert = 0; expert < experts; ++expert) {
    if (rank_of_expert[expert] < ranks) continue;
    return {Code::invalid_argument, "the expert map puts expert " + std::to_string(expert) + " on rank " +
                                        std::to_string(rank_of_expert[expert]) + "; ranks are 0.." +
                                        std::to_string(ranks - 1)};
  }
  return {};
}

}  // namespace

Result<ExpertMap> ExpertMap::create(uint32_t experts, std::vector<uint16_t> domain_of_rank,
                                    std::span<const uint32_t> rank_of_expert) {
  if (domain_of_rank.empty() || domain_of_rank.size() > kMaxRanks) {
    return fail(Code::invalid_argument, "a group of " + std::to_string(domain_of_rank.size()) +
                                            " ranks; allowed are 1.." + std::to_string(kMaxRanks));
  }
  if (experts == 0) return fail(Code::invalid_argument, "a group of 0 experts; at least 1 is needed");
  const auto ranks = static_cast<uint32_t>(domain_of_rank.size());
  const uint32_t domains = uint32_t{*std::max_element(domain_of_rank.begin(), domain_of_rank.end())} + 1;
  if (Status bad = check_domains(domain_of_rank, domains); !bad.ok()) return fail(std::move(bad));
  const uint64_t most = std::min<uint64_t>(uint64_t{domains} * kMaxDomainExperts, kUnusedPlace);
  if (experts > most) {
    return fail(Code::invalid_argument, "a group of " + std::to_string(experts) + " experts; at most " +
                                            std::to_string(most) + " fit into " + std::to_string(domains) + " domains");
  }
  std::vector<uint32_t> blocks;
  if (rank_of_expert.empty()) {
    blocks = contiguous_blocks(experts, ranks);
    rank_of_expert = blocks;
  }
  if (Status bad = check_map(rank_of_expert, experts, ranks); !bad.ok()) return fail(std::move(bad));

  ExpertMap map;
  map.domain_of_rank_ = std::move(domain_of_rank);
  map.number_ranks(domains);
  map.number_experts(rank_of_expert);
  for (uint32_t domain = 0; domain < domains; ++domain) {
    const auto held = map.experts_in(static_cast<uint16_t>(domain)).size();
    if (held <= kMaxDomainExperts) continue;
    return fail(Code::invalid_argument, "domain " + std::to_string(domain) + " holds " + std::to_string(held) +
                                            " experts; at most " + std::to_string(kMaxDomainExperts) +
                                            " fit in one domain, spread them over more");
  }
  return map;
}

void ExpertMap::number_ranks(uint32_t domains) {
  domain_rank_.assign(domains + 1, 0);
  for (const uint16_t domain : domain_of_rank_) ++domain_rank_[domain + 1u];
  for (uint32_t domain = 0; domain < domains; ++domain) domain_rank_[domain + 1] += domain_rank_[domain];

  rank_order_.resize(ranks());
  local_rank_.resize(ranks());
  std::vector<uint32_t> next(domain_rank_.begin(), domain_rank_.end() - 1);
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    const uint16_t domain = domain_of_rank_[rank];
    local_rank_[rank] = static_cast<uint16_t>(next[domain] - domain_rank_[domain]);
    rank_order_[next[domain]++] = rank;
  }
}

void ExpertMap::number_experts(std::span<const uint32_t> rank_of_expert) {
  const auto experts = static_cast<uint32_t>(rank_of_expert.size());
  rank_experts_.assign(ranks(), 0);
  for (const uint32_t rank : rank_of_expert) ++rank_experts_[rank];

  rank_place_.resize(ranks());
  domain_place_.assign(domain_rank_.size(), experts);
  uint32_t place = 0;
  for (uint32_t at = 0; at < ranks(); ++at) {
    const uint32_t rank = rank_order_[at];
    if (local_rank_[rank] == 0) domain_place_[domain_of_rank_[rank]] = place;
    rank_place_[rank] = place;
    place += rank_experts_[rank];
  }

  place_of_.resize(experts);
  expert_at_.resize(experts);
  home_.resize(experts);
  std::vector<uint32_t> used(ranks(), 0);
  for (uint32_t expert = 0; expert < experts; ++expert) {
    const uint32_t rank = rank_of_expert[expert];
    const uint32_t on_rank = used[rank]++;
    place = rank_place_[rank] + on_rank;
    place_of_[expert] = place;
    expert_at_[place] = expert;
    home_[place] = {.rank = rank,
                    .on_rank = on_rank,
                    .domain = domain_of_rank_[rank],
                    .local_rank = local_rank_[rank],
                    .dense = static_cast<uint16_t>(place - domain_place_[domain_of_rank_[rank]])};
  }
}

}  // namespace railhead::kernels
