// Which rings a rank has, in which order: computed alike by the client, its daemon and the peer daemon.
//
// A rail ring carries the tokens of one home rank and one channel between that rank and the forwarder that serves it in
// another domain. dispatch: home -> forwarder; combine: forwarder -> home. So every (home, channel, other domain) has
// two rings, and a rank holds rings in two roles: as home of its own tokens, and as forwarder of others'.
#pragma once

#include <cstdint>
#include <vector>

#include "ipc/layout/shape.hpp"

namespace railhead::ipc {

// The rank of `domain` that forwards for (home, channel): spread by the home's local index, so uneven shapes spread
// too.
std::uint16_t forwarder(const GroupShape& shape, std::uint32_t home, std::uint32_t channel, std::uint32_t domain);

// One direction of one ring as its owner sees it.
struct RingEnd {
  std::uint16_t home;
  std::uint16_t channel;
  std::uint16_t domain;     // the forwarder's domain
  std::uint16_t forwarder;  // rank
  std::uint16_t peer;       // the rank at the other end
};

// All rings of one rank. Index spaces: tx = [dispatch as home][combine as forwarder],
// rx = [dispatch as forwarder][combine as home]. As home: (other domain ascending, channel ascending). As forwarder:
// (home rank ascending, channel ascending). `as_home[i]` and `as_forwarder[i]` name both rings of the pair.
class RailRings {
 public:
  RailRings() = default;
  RailRings(const GroupShape& shape, std::uint32_t rank);

  [[nodiscard]] const std::vector<RingEnd>& as_home() const noexcept { return as_home_; }
  [[nodiscard]] const std::vector<RingEnd>& as_forwarder() const noexcept { return as_forwarder_; }
  [[nodiscard]] std::uint32_t tx_count() const {
    return static_cast<std::uint32_t>(as_home_.size() + as_forwarder_.size());
  }
  [[nodiscard]] std::uint32_t rx_count() const { return tx_count(); }

  [[nodiscard]] std::uint32_t tx_dispatch(std::uint32_t home_index) const { return home_index; }
  [[nodiscard]] std::uint32_t tx_combine(std::uint32_t forwarder_index) const {
    return static_cast<std::uint32_t>(as_home_.size()) + forwarder_index;
  }
  [[nodiscard]] std::uint32_t rx_dispatch(std::uint32_t forwarder_index) const { return forwarder_index; }
  [[nodiscard]] std::uint32_t rx_combine(std::uint32_t home_index) const {
    return static_cast<std::uint32_t>(as_forwarder_.size()) + home_index;
  }
  // The other end of a tx ring: rank and that rank's rx index.
  struct Target {
    std::uint16_t rank;
    std::uint32_t rx;
  };
  [[nodiscard]] Target target_of_tx(const GroupShape& shape, std::uint32_t tx) const;

 private:
  std::vector<RingEnd> as_home_;
  std::vector<RingEnd> as_forwarder_;
};

// A request to the daemon names a ring in 16 bits (RailRequest).
inline constexpr std::uint32_t kMaxRings = 1U << 16;
// limit_exceeded when the rank would have more, on very many hosts with many channels.
Result<void> check_rings(const GroupShape& shape, std::uint32_t rank);

// Bytes and offsets of a rank's rail segment: tx slots, rx slots, header slots to send from.
class RailSegmentLayout {
 public:
  RailSegmentLayout() = default;
  RailSegmentLayout(const GroupShape& shape, std::uint32_t rank);

  [[nodiscard]] std::uint64_t tx_slot(std::uint32_t ring, std::uint64_t sequence) const {
    return (static_cast<std::uint64_t>(ring) * slots_ + sequence % slots_) * slot_bytes_;
  }
  [[nodiscard]] std::uint64_t rx_slot(std::uint32_t ring, std::uint64_t sequence) const {
    return rx_base_ + (static_cast<std::uint64_t>(ring) * slots_ + sequence % slots_) * slot_bytes_;
  }
  // Where the header of `op` for the other_domain-th other domain (ascending) is sent from; 2 depth + 1 deep, like the
  // header slots of the receiving daemon, so that no acknowledgement is needed (docs/progress.md).
  [[nodiscard]] std::uint64_t header_slot(std::uint32_t other_domain, std::uint64_t op) const {
    return header_base_ +
           (static_cast<std::uint64_t>(other_domain) * header_depth_ + op % header_depth_) * header_bytes_;
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t slot_bytes() const noexcept { return slot_bytes_; }
  [[nodiscard]] std::uint32_t header_bytes() const noexcept { return header_bytes_; }

 private:
  std::uint32_t slots_ = 0;
  std::uint32_t slot_bytes_ = 0;
  std::uint32_t header_bytes_ = 0;
  std::uint32_t header_depth_ = 1;
  std::uint64_t rx_base_ = 0;
  std::uint64_t header_base_ = 0;
  std::uint64_t bytes_ = 0;
};

// Header slots at the receiving daemon, per remote rank.
constexpr std::uint32_t header_slots(std::uint32_t depth) {
  return 2 * depth + 1;
}

}  // namespace railhead::ipc
