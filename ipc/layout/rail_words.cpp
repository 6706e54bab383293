#include "ipc/layout/rail_words.hpp"

#include <algorithm>
#include <bit>
#include <span>

#include "ipc/layout/align.hpp"

namespace railhead::ipc {
namespace {

std::uint64_t* word(std::byte* base, std::uint64_t offset) {
  return reinterpret_cast<std::uint64_t*>(base + offset);
}

std::span<std::byte> submit_ring(std::byte* base, const RailWordsLayout& layout) {
  return {base + layout.submit_offset(), ring_bytes(layout.submit_capacity())};
}

}  // namespace

RailWordsLayout::RailWordsLayout(const GroupShape& shape, std::uint32_t rank) {
  const RailRings rings(shape, rank);
  // Room for every slot and credit of every ring and all headers in flight, so that a full ring is the exception.
  const std::uint32_t per_ring = 2 * shape.params().ring_slots;
  const std::uint32_t headers = (shape.domains() - 1) * (shape.params().depth + 1);
  const std::uint64_t all = std::uint64_t{rings.tx_count()} * per_ring + headers;
  submit_capacity_ = std::bit_ceil(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(all, 64, kMaxRingCapacity)));
  std::uint64_t at = 0;
  const auto place = [&at](std::uint64_t bytes) {
    const std::uint64_t here = at;
    at = align_up(at + bytes, std::uint64_t{kCacheLine});
    return here;
  };
  submit_ = place(ring_bytes(submit_capacity_));
  granted_ = place(rings.tx_count() * std::uint64_t{kCacheLine});
  arrived_ = place(rings.rx_count() * std::uint64_t{kCacheLine});
  bytes_ = align_up(at, std::uint64_t{4096});
}

Result<RailWordsClient> RailWordsClient::attach(void* base, const RailWordsLayout& layout, std::uint8_t generation) {
  auto* const bytes = static_cast<std::byte*>(base);
  auto ring = RingProducer::attach(submit_ring(bytes, layout), layout.submit_capacity(), generation);
  if (!ring) return fail(ring.error());
  return RailWordsClient(bytes, layout, *ring);
}

std::uint64_t RailWordsClient::granted(std::uint32_t tx) const {
  // acquire: the peer's consumption of the slot happens before we fill it again.
  return load_acquire(*word(base_, layout_.granted_offset(tx)));
}

std::uint64_t RailWordsClient::arrived(std::uint32_t rx) const {
  // acquire: pairs with publish_arrived, so that the slot's bytes are visible.
  return load_acquire(*word(base_, layout_.arrived_offset(rx)));
}

Result<RailWordsDaemon> RailWordsDaemon::attach(void* base, const RailWordsLayout& layout, std::uint8_t generation) {
  auto* const bytes = static_cast<std::byte*>(base);
  auto ring = RingConsumer::attach(submit_ring(bytes, layout), layout.submit_capacity(), generation);
  if (!ring) return fail(ring.error());
  return RailWordsDaemon(bytes, layout, *ring);
}

void RailWordsDaemon::publish_granted(std::uint32_t tx, std::uint64_t value) {
  // release: pairs with granted().
  store_release(*word(base_, layout_.granted_offset(tx)), value);
}

void RailWordsDaemon::publish_arrived(std::uint32_t rx, std::uint64_t value) {
  // release: the NIC's bytes, visible to this thread by the completion, are visible before the count.
  store_release(*word(base_, layout_.arrived_offset(rx)), value);
}

}  // namespace railhead::ipc
