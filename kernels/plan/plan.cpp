#include "kernels/plan/plan.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <string>

#include "kernels/plan/slot_order.hpp"

namespace railhead::kernels {
namespace {

using plan_detail::DomainCounts;
using plan_detail::DomainRun;

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kMaxTokens = std::numeric_limits<int32_t>::max();
constexpr uint32_t kMaxSlots = std::numeric_limits<uint16_t>::max();
constexpr uint32_t kMaxChannels = std::numeric_limits<uint16_t>::max();

template <class T>
void grow(std::vector<T>& storage, size_t needed) {
  if (storage.size() < needed) storage.resize(needed);
}

Status bad_value(const std::string& what, uint64_t value, const std::string& allowed) {
  return {Code::invalid_argument, what + " is " + std::to_string(value) + "; allowed are " + allowed};
}

Status bad_pitch(const std::string& what, uint64_t pitch, uint32_t top_k) {
  return bad_value("the pitch of the " + what, pitch, "values of at least top-k, " + std::to_string(top_k));
}

Status check_shape(const Routing& routing, uint32_t channels) {
  if (routing.tokens > kMaxTokens) return bad_value("the number of tokens", routing.tokens, "0..2147483647");
  if (routing.top_k == 0 || routing.top_k > kMaxSlots) return bad_value("top-k", routing.top_k, "1..65535");
  if (channels == 0 || channels > kMaxChannels) return bad_value("the number of channels", channels, "1..65535");
  if (routing.tokens == 0) return {};
  if (routing.ids == nullptr) {
    return {Code::invalid_argument, "the expert ids are null with " + std::to_string(routing.tokens) + " tokens"};
  }
  if (routing.id_pitch < routing.top_k) return bad_pitch("expert ids", routing.id_pitch, routing.top_k);
  if (routing.weights != nullptr && routing.weight_pitch < routing.top_k) {
    return bad_pitch("weights", routing.weight_pitch, routing.top_k);
  }
  return {};
}

Status bad_id(uint32_t token, uint32_t slot, int64_t id, uint32_t experts) {
  return {Code::invalid_argument, "row " + std::to_string(token) + ", slot " + std::to_string(slot) +
                                      ": expert id is " + std::to_string(id) + "; allowed are 0.." +
                                      std::to_string(experts - 1) + ", or -1 for an unused slot"};
}

// Ids are read exactly once: what is checked here is what the plan is made of.
template <class Id>
Status translate_ids(const Routing& routing, const ExpertMap& map, uint32_t* places) {
  const auto* ids = static_cast<const Id*>(routing.ids);
  const uint32_t experts = map.experts();
  for (uint32_t token = 0; token < routing.tokens; ++token, ids += routing.id_pitch, places += routing.top_k) {
    for (uint32_t slot = 0; slot < routing.top_k; ++slot) {
      const int64_t id = ids[slot];
      if (static_cast<uint64_t>(id) < experts) {
        places[slot] = map.place_of(static_cast<uint32_t>(id));
      } else if (id == -1) {
        places[slot] = kUnusedPlace;
      } else {
        return bad_id(token, slot, id, experts);
      }
    }
  }
  return {};
}

// Numbers the placements of token after token.
class Numbering {
 public:
  // `domains` says where the counts of each domain are; all of them start at zero.
  Numbering(const Routing& routing, const ExpertMap& map, const DomainCounts* domains, Placement* placements,
            DomainRun* runs)
      : routing_(routing), map_(map), domains_(domains), placements_(placements), runs_(runs) {}

  // `keys` are the used slots of the token in order.
  void add_token(uint32_t token, uint32_t channel, std::span<const SlotKey> keys);

  [[nodiscard]] uint64_t placements() const { return placement_count_; }
  [[nodiscard]] size_t runs() const { return run_count_; }

 private:
  const Routing& routing_;
  const ExpertMap& map_;
  const DomainCounts* domains_;
  Placement* placements_;
  DomainRun* runs_;
  uint64_t placement_count_ = 0;
  size_t run_count_ = 0;
};

void Numbering::add_token(uint32_t token, uint32_t channel, std::span<const SlotKey> keys) {
  const float* weights = routing_.weights == nullptr ? nullptr : routing_.weights + token * routing_.weight_pitch;
  uint32_t last_place = kUnusedPlace;
  uint32_t last_rank = kNone;
  uint32_t last_domain = kNone;
  DomainCounts counts{};
  Placement* next = placements_ + placement_count_;
  for (const SlotKey key : keys) {
    const uint32_t place = place_of(key);
    const uint16_t slot = slot_of(key);
    const float weight = weights == nullptr ? 1.0F : weights[slot];
    if (place == last_place) {
      next[-1].weight += weight;
      continue;
    }
    const ExpertHome& home = map_.home_at(place);
    if (home.domain != last_domain) {
      counts = domains_[home.domain];
      ++counts.channels[channel];
      runs_[run_count_++] = {{.first = static_cast<uint64_t>(next - placements_), .token = token, .count = 0},
                             home.domain};
    }
    // Added, not branched on: with few ranks the branch would be a coin toss.
    const uint32_t rank_rows = counts.ranks[home.local_rank] += home.rank != last_rank ? 1 : 0;
    *next++ = {.domain = home.domain,
               .local_rank = home.local_rank,
               .expert = home.dense,
               .slot = slot,
               .expert_ordinal = counts.experts[home.dense]++,
               .rank_ordinal = rank_rows - 1,
               .weight = weight};
    ++runs_[run_count_ - 1].run.count;
    last_place = place;
    last_rank = home.rank;
    last_domain = home.domain;
  }
  placement_count_ = static_cast<uint64_t>(next - placements_);
}

}  // namespace

SliceShape slice_shape(const ExpertMap& map, uint16_t domain, uint32_t channels) {
  return {.experts = static_cast<uint32_t>(map.experts_in(domain).size()),
          .ranks = static_cast<uint32_t>(map.ranks_in(domain).size()),
          .channels = channels};
}

Status Plan::build(const Routing& routing, const ExpertMap& map, uint32_t channels) try {
  if (Status bad = check_shape(routing, channels); !bad.ok()) return bad;
  if (Status bad = translate(routing, map); !bad.ok()) return bad;
  reserve(routing, map, channels);
  tokens_ = routing.tokens;
  channels_ = channels;
  lay_out_slices(map);
  number(routing, map);
  sort_runs(map);
  return {};
} catch (const std::bad_alloc&) {
  return {Code::out_of_memory, "no memory for the plan of " + std::to_string(routing.tokens) + " tokens x top-" +
                                   std::to_string(routing.top_k) + "; split the call"};
}

Status Plan::translate(const Routing& routing, const ExpertMap& map) {
  grow(places_, size_t{routing.tokens} * routing.top_k);
  return routing.id_type == IdType::int32 ? translate_ids<int32_t>(routing, map, places_.data())
                                          : translate_ids<int64_t>(routing, map, places_.data());
}

// All allocation happens here, so that running out of memory leaves the old plan whole.
void Plan::reserve(const Routing& routing, const ExpertMap& map, uint32_t channels) {
  const size_t domains = map.domains();
  const size_t most_runs = routing.tokens * std::min<size_t>(domains, routing.top_k);
  grow(keys_, std::max<size_t>(slot_key_room(routing.top_k), domains));
  grow(counts_, domains);
  grow(token_first_, size_t{routing.tokens} + 1);
  grow(placements_, size_t{routing.tokens} * routing.top_k);
  grow(token_runs_, most_runs);
  grow(runs_, most_runs);
  run_first_.reserve(domains * channels + 1);
  slice_first_.reserve(domains + 1);
  slices_.reserve(map.experts() + map.ranks() + domains * channels);
}

void Plan::lay_out_slices(const ExpertMap& map) {
  slice_first_.assign(1, 0);
  for (uint32_t domain = 0; domain < map.domains(); ++domain) {
    slice_first_.push_back(slice_first_.back() + slice_shape(map, static_cast<uint16_t>(domain), channels_).words());
  }
  slices_.assign(slice_first_.back(), 0);
  for (uint32_t domain = 0; domain < map.domains(); ++domain) {
    const SliceShape shape = slice_shape(map, static_cast<uint16_t>(domain), channels_);
    uint32_t* const experts = slices_.data() + slice_first_[domain];
    counts_[domain] = {experts, experts + shape.experts, experts + shape.experts + shape.ranks};
  }
}

void Plan::number(const Routing& routing, const ExpertMap& map) {
  Numbering numbering(routing, map, counts_.data(), placements_.data(), token_runs_.data());
  token_first_[0] = 0;
  for (uint32_t channel = 0; channel < channels_; ++channel) {
    const uint32_t end = channel_begin(tokens_, channels_, channel + 1);
    for (uint32_t token = channel_begin(tokens_, channels_, channel); token < end; ++token) {
      const uint32_t* places = places_.data() + size_t{token} * routing.top_k;
      const size_t used = order_slots(places, routing.top_k, keys_.data());
      numbering.add_token(token, channel, {keys_.data(), used});
      token_first_[token + 1u] = numbering.placements();
    }
  }
  token_run_count_ = numbering.runs();
}

// Runs were found in token order; the channel counts say where each (domain, channel) starts.
void Plan::sort_runs(const ExpertMap& map) {
  run_first_.assign(1, 0);
  for (uint32_t domain = 0; domain < map.domains(); ++domain) {
    const std::span<const uint32_t> per_channel = slice(static_cast<uint16_t>(domain)).last(channels_);
    for (const uint32_t count : per_channel) run_first_.push_back(run_first_.back() + count);
  }
  // Tokens ascend, so the channels of a domain fill one after the other: one cursor per domain is enough.
  std::vector<uint64_t>& cursor = keys_;
  for (size_t domain = 0; domain < map.domains(); ++domain) cursor[domain] = run_first_[domain * channels_];
  for (size_t i = 0; i < token_run_count_; ++i) runs_[cursor[token_runs_[i].domain]++] = token_runs_[i].run;
}

}  // namespace railhead::kernels
