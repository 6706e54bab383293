// Which slots of a ring have arrived. Immediates may come late, twice and in any order; the owner of the ring sees only
// the contiguous prefix. One thread.
#pragma once

#include <array>
#include <cstdint>

#include "ipc/layout/shape.hpp"
#include "ipc/wire.hpp"

namespace railhead::daemon::rail {

class RxWindow {
 public:
  enum class Arrival : std::uint8_t {
    fresh,      // counted
    duplicate,  // came before
    outside,    // further ahead than the sender may write
  };

  explicit RxWindow(std::uint32_t slots) : slots_(slots) {}

  // `sequence`: the low bits of the slot's sequence, as the immediate carries them.
  Arrival arrive(std::uint16_t sequence) {
    const auto ahead = static_cast<std::uint32_t>((sequence - prefix_) & kSequenceMask);
    // Half of the sequence space lies behind the prefix: four times the largest ring, so nothing old looks new.
    if (ahead > kSequenceMask / 2) return Arrival::duplicate;
    if (ahead >= slots_) return Arrival::outside;
    if (test(prefix_ + ahead)) return Arrival::duplicate;
    flip(prefix_ + ahead);
    while (test(prefix_)) flip(prefix_++);
    return Arrival::fresh;
  }

  // Slots that have arrived without a gap, from the beginning.
  [[nodiscard]] std::uint64_t prefix() const noexcept { return prefix_; }

 private:
  static constexpr std::uint32_t kSequenceMask = (1U << ipc::Immediate::kSequenceBits) - 1;
  static constexpr std::uint32_t kBits = ipc::kMaxRingSlots;
  static_assert(kBits <= (kSequenceMask + 1) / 4 && kBits % 64 == 0);

  [[nodiscard]] bool test(std::uint64_t sequence) const {
    return ((bits_[(sequence % kBits) / 64] >> (sequence % 64)) & 1U) != 0;
  }
  void flip(std::uint64_t sequence) { bits_[(sequence % kBits) / 64] ^= std::uint64_t{1} << (sequence % 64); }

  std::uint64_t prefix_ = 0;
  std::uint32_t slots_;
  std::array<std::uint64_t, kBits / 64> bits_{};
};

}  // namespace railhead::daemon::rail
