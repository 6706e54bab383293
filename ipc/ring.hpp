// Single-producer single-consumer ring of 16-byte descriptors in shared memory.
//
// There is no head word. Both words of a slot carry a tag (lap and generation) in their top 16 bits; the consumer takes
// a slot only when both tags are the ones it expects next. So the producer publishes with the descriptor itself, a pair
// of which one word only has arrived (a producer killed between two stores, a writer without 16-byte stores) reads as
// "not there yet", and what an earlier generation left behind is never taken for new.
//
// Neither side trusts the other: positions are private, the consumer copies a descriptor once, the producer checks the
// tail it reads. What a descriptor says is for the caller to validate.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "ipc/layout/align.hpp"
#include "ipc/shared_word.hpp"
#include "ipc/status.hpp"

namespace railhead::ipc {

// 48 bits each; higher bits are not carried.
struct Descriptor {
  std::uint64_t a = 0;
  std::uint64_t b = 0;

  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};

inline constexpr unsigned kDescriptorBits = 48;
inline constexpr std::uint64_t kDescriptorMask = (1ULL << kDescriptorBits) - 1;
inline constexpr unsigned kRingGenerationBits = 6;
inline constexpr std::uint32_t kRingGenerations = 1U << kRingGenerationBits;
inline constexpr std::uint32_t kMaxRingCapacity = 1U << 20;

struct RingSlot {
  std::uint64_t words[2];  // producer writes, consumer reads
};

// A ring is this header and `capacity` slots. All zero is an empty ring of any generation.
struct RingHeader {
  alignas(kCacheLine) std::uint64_t tail;  // consumer writes, producer reads: descriptors taken since the start
  std::uint64_t reserved[7];
};
static_assert(sizeof(RingHeader) == kCacheLine && sizeof(RingSlot) == 16);

// Bytes of a ring; its start must be aligned to a cache line.
constexpr std::size_t ring_bytes(std::uint32_t capacity) noexcept {
  return align_up<std::size_t>(sizeof(RingHeader) + capacity * sizeof(RingSlot), kCacheLine);
}

// Empties a ring for its next generation. Only when neither side uses it.
inline void ring_clear(std::span<std::byte> memory) noexcept {
  std::memset(memory.data(), 0, memory.size());
}

// Alignment, size, capacity (a power of two up to kMaxRingCapacity) and generation (below 64) fit, or invalid_argument.
inline Result<void> check_ring(std::span<const std::byte> memory, std::uint32_t capacity, std::uint32_t generation) {
  if (!std::has_single_bit(capacity) || capacity > kMaxRingCapacity) {
    return fail(Code::invalid_argument, "ring capacity " + std::to_string(capacity) + ": use a power of two up to " +
                                            std::to_string(kMaxRingCapacity));
  }
  if (generation >= kRingGenerations) {
    return fail(Code::invalid_argument,
                "ring generation " + std::to_string(generation) + ": use 0 to " + std::to_string(kRingGenerations - 1));
  }
  if (memory.size() < ring_bytes(capacity) || reinterpret_cast<std::uintptr_t>(memory.data()) % kCacheLine != 0) {
    return fail(Code::invalid_argument, "ring of " + std::to_string(capacity) + " slots needs " +
                                            std::to_string(ring_bytes(capacity)) + " bytes aligned to " +
                                            std::to_string(kCacheLine) + ", got " + std::to_string(memory.size()));
  }
  return {};
}

// Where one side stands, and the tag that belongs there. Laps run 1 ... 1023, 1 ...: never 0, so zeroed memory holds no
// valid tag, and the lap before always differs.
class RingCursor {
 public:
  RingCursor(std::uint32_t capacity, std::uint32_t generation) noexcept
      : mask_(capacity - 1), tag_(kFirstLap | (std::uint64_t{generation} << kDescriptorBits)) {}

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return mask_ + 1; }
  [[nodiscard]] std::size_t index() const noexcept { return position_ & mask_; }
  [[nodiscard]] std::uint64_t tag() const noexcept { return tag_; }

  void advance() noexcept {
    if ((++position_ & mask_) != 0) return;
    tag_ += kFirstLap;
    if ((tag_ & kLapMask) == 0) tag_ += kFirstLap;
  }

 private:
  static constexpr std::uint64_t kFirstLap = 1ULL << (kDescriptorBits + kRingGenerationBits);
  static constexpr std::uint64_t kLapMask = ~(kFirstLap - 1);

  std::uint64_t position_ = 0;
  std::uint64_t mask_;
  std::uint64_t tag_;
};

// The pushing side. One thread at a time.
class RingProducer {
 public:
  static Result<RingProducer> attach(std::span<std::byte> memory, std::uint32_t capacity, std::uint32_t generation) {
    if (const auto good = check_ring(memory, capacity, generation); !good) return fail(good.error());
    return RingProducer(memory.data(), capacity, generation);
  }

  // False when the ring is full (or corrupt()). What the caller wrote before is visible to whoever pops this.
  bool try_push(Descriptor descriptor) noexcept {
    if (cursor_.position() - tail_ >= cursor_.capacity() && !refresh_tail()) return false;
    RingSlot& slot = slots_[cursor_.index()];
    // relaxed: the consumer looks at words[1] first, whose release covers this store.
    store_relaxed(slot.words[0], cursor_.tag() | (descriptor.a & kDescriptorMask));
    // release: publishes words[0] and everything the descriptor points to.
    store_release(slot.words[1], cursor_.tag() | (descriptor.b & kDescriptorMask));
    cursor_.advance();
    return true;
  }

  // Descriptors not yet taken, at the time of the call.
  [[nodiscard]] std::uint64_t pending() noexcept {
    refresh_tail();
    return cursor_.position() - tail_;
  }
  [[nodiscard]] std::uint64_t pushed() const noexcept { return cursor_.position(); }

  // The consumer published a tail that is impossible; nothing more can be pushed once the known room is used up.
  [[nodiscard]] bool corrupt() const noexcept { return corrupt_; }

 private:
  RingProducer(std::byte* memory, std::uint32_t capacity, std::uint32_t generation) noexcept
      : header_(reinterpret_cast<RingHeader*>(memory)),
        slots_(reinterpret_cast<RingSlot*>(memory + sizeof(RingHeader))),
        cursor_(capacity, generation) {}

  // True when there is room.
  bool refresh_tail() noexcept {
    // acquire: the consumer's reads of the slots it freed come before our next stores into them.
    const std::uint64_t seen = load_acquire(header_->tail);
    if (seen < tail_ || seen > cursor_.position()) {
      corrupt_ = true;
      return false;
    }
    tail_ = seen;
    return cursor_.position() - tail_ < cursor_.capacity();
  }

  RingHeader* header_;
  RingSlot* slots_;
  RingCursor cursor_;
  std::uint64_t tail_ = 0;
  bool corrupt_ = false;
};

// The popping side. One thread at a time.
class RingConsumer {
 public:
  static Result<RingConsumer> attach(std::span<std::byte> memory, std::uint32_t capacity, std::uint32_t generation) {
    if (const auto good = check_ring(memory, capacity, generation); !good) return fail(good.error());
    return RingConsumer(memory.data(), capacity, generation);
  }

  std::optional<Descriptor> try_pop() noexcept {
    const std::optional<Descriptor> taken = take();
    if (taken) publish_tail();
    return taken;
  }

  // Takes up to out.size() descriptors with one store to the tail; returns how many.
  std::size_t pop_batch(std::span<Descriptor> out) noexcept {
    std::size_t count = 0;
    for (; count < out.size(); ++count) {
      const std::optional<Descriptor> taken = take();
      if (!taken) break;
      out[count] = *taken;
    }
    if (count > 0) publish_tail();
    return count;
  }

  // Whether a pop would find something.
  [[nodiscard]] bool ready() const noexcept { return peek(cursor_).has_value(); }

  // Descriptors that stand in the ring, counted slot by slot: for diagnostics.
  [[nodiscard]] std::uint64_t pending() const noexcept {
    RingCursor at = cursor_;
    while (at.position() - cursor_.position() < at.capacity() && peek(at)) at.advance();
    return at.position() - cursor_.position();
  }
  [[nodiscard]] std::uint64_t popped() const noexcept { return cursor_.position(); }

 private:
  RingConsumer(std::byte* memory, std::uint32_t capacity, std::uint32_t generation) noexcept
      : header_(reinterpret_cast<RingHeader*>(memory)),
        slots_(reinterpret_cast<const RingSlot*>(memory + sizeof(RingHeader))),
        cursor_(capacity, generation) {}

  [[nodiscard]] std::optional<Descriptor> peek(const RingCursor& at) const noexcept {
    const RingSlot& slot = slots_[at.index()];
    // acquire: pairs with the producer's release of words[1]; words[0] and the data behind are visible with it.
    const std::uint64_t second = load_acquire(slot.words[1]);
    if ((second & ~kDescriptorMask) != at.tag()) return std::nullopt;
    // relaxed: ordered after the acquire above; its own tag catches a writer that stored in the other order.
    const std::uint64_t first = load_relaxed(slot.words[0]);
    if ((first & ~kDescriptorMask) != at.tag()) return std::nullopt;
    return Descriptor{first & kDescriptorMask, second & kDescriptorMask};
  }

  std::optional<Descriptor> take() noexcept {
    const std::optional<Descriptor> found = peek(cursor_);
    if (found) cursor_.advance();
    return found;
  }

  // release: our reads of the freed slots come before the producer's next stores into them.
  void publish_tail() noexcept { store_release(header_->tail, cursor_.position()); }

  RingHeader* header_;
  const RingSlot* slots_;
  RingCursor cursor_;
};

}  // namespace railhead::ipc
