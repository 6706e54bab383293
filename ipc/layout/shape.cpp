#include "ipc/layout/shape.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "ipc/layout/align.hpp"
#include "ipc/wire.hpp"

namespace railhead::ipc {
namespace {

// Two full TCP segments of up to 64 KiB, less the headers before each: a chunk that is a little longer travels in one
// more. Every chunk costs both daemons some ten system calls, so more is better until the ring leaves the cache
// (docs/benchmarks.md, "Chunks").
constexpr std::uint32_t kChunkTarget = 125'000;
constexpr std::uint32_t kUsualElementBytes = 2;

// What is under way for one host should stay in its cache: about 16 chunks of one kind of operation. Two slots a ring
// keep both ends busy; beyond four nothing is gained (docs/benchmarks.md, "Slots").
constexpr std::uint32_t kChunksOfHost = 16;
constexpr std::uint32_t kFewestSlots = 2;
constexpr std::uint32_t kMostSlots = 4;

Result<void> in_range(const char* field, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value >= low && value <= high) return {};
  return fail(Code::invalid_argument, std::string("group parameter ") + field + " is " + std::to_string(value) +
                                          ", allowed is " + std::to_string(low) + " to " + std::to_string(high));
}

}  // namespace

std::vector<std::uint32_t> default_expert_rank(std::uint32_t experts, std::uint32_t ranks) {
  std::vector<std::uint32_t> map(experts);
  const std::uint32_t base = experts / ranks;  // NOLINT(clang-analyzer-core.DivideZero): ranks were checked
  const std::uint32_t extra = experts % ranks;
  for (std::uint32_t e = 0; e < experts; ++e) {
    const std::uint32_t in_large = extra * (base + 1);
    map[e] = e < in_large ? e / (base + 1) : extra + (e - in_large) / base;
  }
  return map;
}

Result<void> validate(const GroupParams& p) {
  const struct {
    const char* field;
    std::uint64_t value, low, high;
  } rules[] = {
      {"ranks", p.ranks, 1, kMaxRanks},
      {"experts", p.experts, 1, kMaxExperts},
      {"hidden", p.hidden, 1, kMaxHidden},
      {"topk", p.topk, 1, kMaxTopk},
      {"side_bytes", p.side_bytes, 0, kMaxSideBytes},
      {"channels", p.channels, 1, kMaxChannels},
      {"depth", p.depth, 1, kMaxDepth},
      {"ring_slots", p.ring_slots, 0, kMaxRingSlots},
      {"chunk_bytes", p.chunk_bytes, 0, 1U << 30},
      {"max_handles", p.max_handles, 1, 1U << 16},
  };
  for (const auto& rule : rules) {
    if (auto ok = in_range(rule.field, rule.value, rule.low, rule.high); !ok) return ok;
  }
  if (p.expert_rank.empty()) return {};
  if (p.expert_rank.size() != p.experts) {
    return fail(Code::invalid_argument, "expert_rank has " + std::to_string(p.expert_rank.size()) +
                                            " entries, experts is " + std::to_string(p.experts));
  }
  for (std::size_t e = 0; e < p.expert_rank.size(); ++e) {
    if (p.expert_rank[e] >= p.ranks) {
      return fail(Code::invalid_argument, "expert_rank[" + std::to_string(e) + "] is " +
                                              std::to_string(p.expert_rank[e]) + ", ranks is " +
                                              std::to_string(p.ranks));
    }
  }
  return {};
}

GroupShape::GroupShape(GroupParams params, GroupMap map) : params_(std::move(params)), map_(std::move(map)) {
  local_of_rank_.resize(params_.ranks);
  for (std::uint32_t r = 0; r < params_.ranks; ++r) {
    const std::uint16_t domain = map_.domain_of_rank[r];
    if (domain >= ranks_of_domain_.size()) ranks_of_domain_.resize(domain + 1U);
    local_of_rank_[r] = static_cast<std::uint16_t>(ranks_of_domain_[domain].size());
    ranks_of_domain_[domain].push_back(static_cast<std::uint16_t>(r));
  }
  expert_rank_ =
      params_.expert_rank.empty() ? default_expert_rank(params_.experts, params_.ranks) : params_.expert_rank;
  experts_of_domain_.assign(ranks_of_domain_.size(), 0);
  for (const std::uint32_t rank : expert_rank_) ++experts_of_domain_[map_.domain_of_rank[rank]];
  if (params_.ring_slots == 0) params_.ring_slots = default_ring_slots();
}

std::uint32_t GroupShape::default_ring_slots() const {
  std::size_t locals = 1;
  for (const auto& ranks : ranks_of_domain_) locals = std::max(locals, ranks.size());
  const std::size_t rings = locals * std::max(domains() - 1U, 1U) * params_.channels;
  return std::clamp(static_cast<std::uint32_t>(kChunksOfHost / rings), kFewestSlots, kMostSlots);
}

std::uint32_t GroupShape::slice_words(std::uint32_t domain) const {
  return experts_of_domain_[domain] + static_cast<std::uint32_t>(ranks_of_domain_[domain].size()) + params_.channels;
}

std::uint32_t GroupShape::header_bytes() const {
  std::uint32_t words = 0;
  for (std::uint32_t d = 0; d < domains(); ++d) words = std::max(words, slice_words(d));
  return align_up(static_cast<std::uint32_t>(sizeof(OpHeader)) + words * 4, kCacheLine);
}

std::uint32_t GroupShape::dispatch_record_bytes(std::uint32_t element_bytes) const {
  return DispatchRecordLayout(params_.topk, params_.side_bytes, params_.hidden * element_bytes).stride;
}

std::uint32_t GroupShape::combine_record_bytes(std::uint32_t element_bytes) const {
  return align_up(static_cast<std::uint32_t>(sizeof(CombineRecord)) + params_.hidden * element_bytes, kCacheLine);
}

std::uint32_t GroupShape::slot_bytes() const {
  constexpr auto kHeader = static_cast<std::uint32_t>(sizeof(ChunkHeader));
  const std::uint32_t usual = dispatch_record_bytes(kUsualElementBytes);
  const std::uint32_t target = params_.chunk_bytes != 0 ? params_.chunk_bytes : kChunkTarget;
  const std::uint32_t records = std::max(1U, target / usual);
  const std::uint32_t largest =
      std::max(dispatch_record_bytes(kMaxElementBytes), combine_record_bytes(kMaxElementBytes));
  return kHeader + std::max(records * usual, largest);
}

// A slot fits one record of the largest element whatever was asked for: small records would fill that with several.
std::uint32_t GroupShape::chunk_record_bytes() const {
  const std::uint32_t room = slot_bytes() - static_cast<std::uint32_t>(sizeof(ChunkHeader));
  return params_.chunk_bytes == 0 ? room : std::min(room, params_.chunk_bytes);
}

}  // namespace railhead::ipc
