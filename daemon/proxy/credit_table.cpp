#include "daemon/proxy/credit_table.hpp"

#include "ipc/shared_word.hpp"

namespace railhead::daemon::rail {
namespace {

// The far NIC may write the pair while it is read; whole() tells. ThreadSanitizer sees the loopback fabric's copy as
// what it stands for and need not report it.
__attribute__((no_sanitize("thread"))) ipc::CreditWord load(const ipc::CreditWord& word) {
  // acquire: keeps the two loads in order.
  const std::uint64_t consumed = ipc::load_acquire(word.consumed);
  return {consumed, ipc::load_acquire(word.complement)};
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
