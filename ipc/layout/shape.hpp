// The shape of a group: what every rank and daemon must agree on before any byte of shared memory is laid out.
// Pure arithmetic on plain values: client and daemon compute the same offsets from the same shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ipc/status.hpp"

namespace railhead::ipc {

// Compiled limits: they follow from field widths on the wire and in shared words, not from taste.
inline constexpr std::uint32_t kMaxRanks = 4096;     // u16 ranks; boards are linear in ranks
inline constexpr std::uint32_t kMaxExperts = 65535;  // u16 domain-local expert index in a placement
inline constexpr std::uint32_t kMaxTopk = 256;       // u16 slot; bounds the record
inline constexpr std::uint32_t kMaxDepth = 8;        // boards are depth + 1 deep
inline constexpr std::uint32_t kMaxChannels = 64;
inline constexpr std::uint32_t kMaxRingSlots = 256;  // quarter of the 10-bit slot sequence in an immediate
inline constexpr std::uint32_t kMaxHidden = 1U << 20;
inline constexpr std::uint32_t kMaxSideBytes = 1U << 16;
inline constexpr std::uint32_t kMaxElementBytes = 4;

// What the ranks pass to group creation; compared field by field by the coordinator.
struct GroupParams {
  std::uint32_t ranks = 0;
  std::uint32_t experts = 0;
  std::uint32_t hidden = 0;      // elements per token
  std::uint32_t topk = 0;        // slots per token, at most
  std::uint32_t side_bytes = 0;  // opaque bytes beside each token, at most (scales)
  std::uint32_t channels = 1;
  std::uint32_t depth = 2;         // operations in flight
  std::uint32_t ring_slots = 0;    // rx slots per ring; 0 = the default: by how many rings share a host's cache
  std::uint32_t chunk_bytes = 0;   // 0 = the default: about 120 KB, whole bf16 records
  std::uint32_t max_handles = 64;  // live handles
  bool abort_on_refusal = false;   // a refused call ends the group instead of waiting for the corrected one
  std::vector<std::uint32_t>
      expert_rank;  // expert -> rank; empty = contiguous blocks, the first experts % ranks get one more

  bool operator==(const GroupParams&) const = default;
};

// What an empty expert_rank means.
std::vector<std::uint32_t> default_expert_rank(std::uint32_t experts, std::uint32_t ranks);

// Values within limits and consistent with each other; the message names field, value and limit.
Result<void> validate(const GroupParams& params);

// Where everything is: fixed at commit, the same on every rank and daemon.
struct GroupMap {
  std::uint32_t epoch = 0;
  std::vector<std::uint16_t> domain_of_rank;  // [ranks]; domains are numbered by their lowest rank

  bool operator==(const GroupMap&) const = default;
};

// Parameters and map together, with everything derived from them that more than one part needs.
class GroupShape {
 public:
  GroupShape() = default;
  // Both must have passed validate(); domain numbers must be dense.
  GroupShape(GroupParams params, GroupMap map);

  // With ring_slots resolved.
  [[nodiscard]] const GroupParams& params() const noexcept { return params_; }
  [[nodiscard]] const GroupMap& map() const noexcept { return map_; }
  [[nodiscard]] std::uint32_t ranks() const noexcept { return params_.ranks; }
  [[nodiscard]] std::uint32_t domains() const noexcept { return static_cast<std::uint32_t>(ranks_of_domain_.size()); }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return map_.epoch; }
  [[nodiscard]] std::uint16_t domain_of(std::uint32_t rank) const { return map_.domain_of_rank[rank]; }
  [[nodiscard]] std::uint16_t local_of(std::uint32_t rank) const { return local_of_rank_[rank]; }
  [[nodiscard]] const std::vector<std::uint16_t>& ranks_of(std::uint32_t domain) const {
    return ranks_of_domain_[domain];
  }
  // Resolved expert -> rank map (never empty).
  [[nodiscard]] const std::vector<std::uint32_t>& expert_rank() const noexcept { return expert_rank_; }
  [[nodiscard]] std::uint32_t experts_of_domain(std::uint32_t domain) const { return experts_of_domain_[domain]; }

  // u32 words of the slice that a source sends a domain: rows per domain-local expert, tokens per local rank,
  // records per channel.
  [[nodiscard]] std::uint32_t slice_words(std::uint32_t domain) const;
  // Bytes of a board row or header slot: header and the largest slice, whole cache lines.
  [[nodiscard]] std::uint32_t header_bytes() const;

  // Bytes of one record on the wire for elements of this size; whole cache lines.
  [[nodiscard]] std::uint32_t dispatch_record_bytes(std::uint32_t element_bytes) const;
  [[nodiscard]] std::uint32_t combine_record_bytes(std::uint32_t element_bytes) const;
  // Bytes of a ring slot: chunk header and at least one record of the largest element.
  [[nodiscard]] std::uint32_t slot_bytes() const;
  // Bytes of records that a chunk may hold: all of the slot, or chunk_bytes where it was given. One record always may.
  [[nodiscard]] std::uint32_t chunk_record_bytes() const;

 private:
  [[nodiscard]] std::uint32_t default_ring_slots() const;

  GroupParams params_;
  GroupMap map_;
  std::vector<std::uint16_t> local_of_rank_;
  std::vector<std::vector<std::uint16_t>> ranks_of_domain_;
  std::vector<std::uint32_t> expert_rank_;
  std::vector<std::uint32_t> experts_of_domain_;
};

}  // namespace railhead::ipc
