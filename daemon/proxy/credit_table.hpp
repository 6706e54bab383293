// Credits that one peer daemon writes into our memory: one word per ring number of that peer.
//
// The value carries the generation of the number in its top bits, so that a credit that was still on its way when the
// number was given to another ring is not taken for that ring's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "daemon/proxy/nic_memory.hpp"
#include "daemon/proxy/ring_numbers.hpp"
#include "ipc/wire.hpp"

namespace railhead::daemon::rail {

inline constexpr unsigned kCreditBits = 64 - ipc::Immediate::kGenerationBits;

constexpr ipc::CreditWord make_credit(std::uint8_t generation, std::uint64_t consumed) {
  return ipc::CreditWord::make((std::uint64_t{generation} << kCreditBits) | consumed);
}

class CreditTable {
 public:
  static Result<CreditTable> create(fabric::Fabric& fabric, std::uint32_t numbers);

  // Slots consumed of the ring, or nothing where the word is torn or belongs to another use of the number.
  [[nodiscard]] std::optional<std::uint64_t> read(RingName ring) const;
  [[nodiscard]] fabric::RemoteKey remote() const noexcept { return memory_.remote(); }

 private:
  explicit CreditTable(NicMemory memory) : memory_(std::move(memory)) {}

  NicMemory memory_;
};

}  // namespace railhead::daemon::rail
