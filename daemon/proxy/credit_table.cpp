#include "daemon/proxy/credit_table.hpp"

namespace railhead::daemon::rail {
namespace {

// The far NIC may write the pair while it is read; whole() tells. ThreadSanitizer would report the loopback fabric's
// copy, which stands for the NIC; the attribute reaches builtins, not the templates of ipc/shared_word.hpp.
__attribute__((no_sanitize("thread"))) ipc::CreditWord load(const ipc::CreditWord& word) {
  // acquire: keeps the two loads in order.
  const std::uint64_t consumed = __atomic_load_n(&word.consumed, __ATOMIC_ACQUIRE);
  return {consumed, __atomic_load_n(&word.complement, __ATOMIC_ACQUIRE)};
}

}  // namespace

Result<CreditTable> CreditTable::create(fabric::Fabric& fabric, std::uint32_t numbers) {
  auto memory = NicMemory::create(fabric, std::size_t{numbers} * sizeof(ipc::CreditWord));
  if (!memory) return fail(memory.error());
  return CreditTable(std::move(*memory));
}

std::optional<std::uint64_t> CreditTable::read(RingName ring) const {
  const auto* const words = reinterpret_cast<const ipc::CreditWord*>(memory_.data());
  const ipc::CreditWord word = load(words[ring.number]);
  if (!word.whole() || (word.consumed >> kCreditBits) != ring.generation) return std::nullopt;
  return word.consumed & ((std::uint64_t{1} << kCreditBits) - 1);
}

}  // namespace railhead::daemon::rail
