#include "ipc/layout/rings.hpp"

#include <algorithm>
#include <string>

namespace railhead::ipc {

std::uint16_t forwarder(const GroupShape& shape, std::uint32_t home, std::uint32_t channel, std::uint32_t domain) {
  const auto& locals = shape.ranks_of(domain);
  const std::uint64_t lane = static_cast<std::uint64_t>(shape.local_of(home)) * shape.params().channels + channel;
  return locals[lane % locals.size()];
}

RailRings::RailRings(const GroupShape& shape, std::uint32_t rank) {
  const std::uint16_t own = shape.domain_of(rank);
  const std::uint32_t channels = shape.params().channels;
  for (std::uint32_t d = 0; d < shape.domains(); ++d) {
    if (d == own) continue;
    for (std::uint32_t c = 0; c < channels; ++c) {
      const std::uint16_t peer = forwarder(shape, rank, c, d);
      as_home_.push_back(
          {static_cast<std::uint16_t>(rank), static_cast<std::uint16_t>(c), static_cast<std::uint16_t>(d), peer, peer});
    }
  }
  for (std::uint32_t home = 0; home < shape.ranks(); ++home) {
    if (shape.domain_of(home) == own) continue;
    for (std::uint32_t c = 0; c < channels; ++c) {
      if (forwarder(shape, home, c, own) != rank) continue;
      const auto h = static_cast<std::uint16_t>(home);
      as_forwarder_.push_back({h, static_cast<std::uint16_t>(c), own, static_cast<std::uint16_t>(rank), h});
    }
  }
}

RailRings::Target RailRings::target_of_tx(const GroupShape& shape, std::uint32_t tx) const {
  const bool dispatch = tx < as_home_.size();
  const RingEnd& end = dispatch ? as_home_[tx] : as_forwarder_[tx - as_home_.size()];
  const RailRings other(shape, end.peer);
  const auto& list = dispatch ? other.as_forwarder_ : other.as_home_;
  const auto found = std::find_if(list.begin(), list.end(), [&](const RingEnd& e) {
    return e.home == end.home && e.channel == end.channel && e.domain == end.domain;
  });
  const auto index = static_cast<std::uint32_t>(found - list.begin());
  return {end.peer, dispatch ? other.rx_dispatch(index) : other.rx_combine(index)};
}

Result<void> check_rings(const GroupShape& shape, std::uint32_t rank) {
  const std::uint32_t rings = RailRings(shape, rank).tx_count();
  if (rings <= kMaxRings) return {};
  return fail(Code::limit_exceeded, "rank " + std::to_string(rank) + " would have " + std::to_string(rings) +
                                        " rings to the other " + std::to_string(shape.domains() - 1) +
                                        " hosts, the most is " + std::to_string(kMaxRings) +
                                        ": use fewer channels than " + std::to_string(shape.params().channels));
}

RailSegmentLayout::RailSegmentLayout(const GroupShape& shape, std::uint32_t rank)
    : slots_(shape.params().ring_slots),
      slot_bytes_(shape.slot_bytes()),
      header_bytes_(shape.header_bytes()),
      header_depth_(header_slots(shape.params().depth)) {
  const RailRings rings(shape, rank);
  rx_base_ = static_cast<std::uint64_t>(rings.tx_count()) * slots_ * slot_bytes_;
  header_base_ = rx_base_ + static_cast<std::uint64_t>(rings.rx_count()) * slots_ * slot_bytes_;
  bytes_ = header_base_ + static_cast<std::uint64_t>(shape.domains() - 1) * header_depth_ * header_bytes_;
}

}  // namespace railhead::ipc
