// The rail words: what one rank and its daemon share about the rank's rings for one epoch. Made by the daemon, mapped
// by that rank alone. The daemon keeps its authoritative counters privately and only publishes them here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ipc/layout/rings.hpp"
#include "ipc/ring.hpp"

namespace railhead::ipc {

// What a descriptor of the submission ring asks for. Payload a (48 bits): kind 8 | index 16 | low 24 bits of the
// sequence or operation. Payload b: see each kind.
enum class RailVerb : std::uint8_t {
  chunk = 1,   // index = tx ring, sequence of the slot; b = bytes
  credit = 2,  // index = rx ring; b = slots consumed, cumulative
  header = 3,  // index = n-th other domain, operation; b = slice words
};

struct RailRequest {
  RailVerb verb;
  std::uint16_t index;
  std::uint32_t low24;  // of the sequence (chunk) or the operation (header)
  std::uint64_t value;  // 48 bits

  [[nodiscard]] Descriptor encode() const {
    return {(static_cast<std::uint64_t>(verb) << 40) | (static_cast<std::uint64_t>(index) << 24) | (low24 & 0xffffffU),
            value & ((1ULL << 48) - 1)};
  }
  static RailRequest decode(const Descriptor& d) {
    return {static_cast<RailVerb>((d.a >> 40) & 0xff), static_cast<std::uint16_t>(d.a >> 24),
            static_cast<std::uint32_t>(d.a & 0xffffffU), d.b};
  }
};

class RailWordsLayout {
 public:
  RailWordsLayout() = default;
  RailWordsLayout(const GroupShape& shape, std::uint32_t rank);

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t submit_capacity() const noexcept { return submit_capacity_; }
  [[nodiscard]] std::uint64_t submit_offset() const noexcept { return submit_; }
  [[nodiscard]] std::uint64_t granted_offset(std::uint32_t tx) const { return granted_ + tx * 64ULL; }
  [[nodiscard]] std::uint64_t arrived_offset(std::uint32_t rx) const { return arrived_ + rx * 64ULL; }

 private:
  std::uint32_t submit_capacity_ = 0;
  std::uint64_t submit_ = 0;
  std::uint64_t granted_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t bytes_ = 0;
};

// The rank's side: reads what the daemon published, submits requests.
class RailWordsClient {
 public:
  // `base` stays mapped as long as this view is used; generation is the daemon's for this epoch.
  static Result<RailWordsClient> attach(void* base, const RailWordsLayout& layout, std::uint8_t generation);

  // Slots of a tx ring that the peer has consumed so far: slot `sequence` may be filled while sequence < granted +
  // slots.
  [[nodiscard]] std::uint64_t granted(std::uint32_t tx) const;
  // Slots of an rx ring that have arrived so far, contiguous.
  [[nodiscard]] std::uint64_t arrived(std::uint32_t rx) const;
  // False when the submission ring is full: step something else, try again.
  bool submit(const RailRequest& request) { return ring_.try_push(request.encode()); }

 private:
  RailWordsClient(std::byte* base, const RailWordsLayout& layout, RingProducer ring)
      : base_(base), layout_(layout), ring_(ring) {}

  std::byte* base_;
  RailWordsLayout layout_;
  RingProducer ring_;
};

// The daemon's side.
class RailWordsDaemon {
 public:
  static Result<RailWordsDaemon> attach(void* base, const RailWordsLayout& layout, std::uint8_t generation);

  void publish_granted(std::uint32_t tx, std::uint64_t value);
  void publish_arrived(std::uint32_t rx, std::uint64_t value);
  // Each descriptor is read once into a private copy. The caller validates every field.
  std::optional<RailRequest> next() {
    const auto descriptor = ring_.try_pop();
    if (!descriptor) return std::nullopt;
    return RailRequest::decode(*descriptor);
  }

 private:
  RailWordsDaemon(std::byte* base, const RailWordsLayout& layout, RingConsumer ring)
      : base_(base), layout_(layout), ring_(ring) {}

  std::byte* base_;
  RailWordsLayout layout_;
  RingConsumer ring_;
};

}  // namespace railhead::ipc
