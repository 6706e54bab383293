#include <cstring>

#include "kernels/host/combine_roles.hpp"

namespace railhead::kernels {

void TermList::clear() {
  rows_.clear();
  weights_.clear();
}

void TermList::add(const CombineForm& form, const ForwardTerm& term) {
  rows_.push_back(form.rows[term.local_rank] + std::uint64_t{term.row} * form.row_bytes());
  weights_.push_back(term.weight);
}

ReduceGroup TermList::group(const CombineForm& form) const {
  return {rows_.data(), form.weighted ? weights_.data() : nullptr, rows_.size(), form.element};
}

Step ReturnRole::step(const CombineForm& form, const ForwardTokens& kept, RailPort& port,
                      std::vector<std::uint32_t>& pulled) {
  const std::uint32_t per_slot =
      (port.slot_bytes() - static_cast<std::uint32_t>(sizeof(ipc::ChunkHeader))) / form.stride;
  Step result = Step::blocked;
  for (std::uint32_t budget = kStepRecords; budget > 0; --budget) {
    if (next_ == kept.tokens.size() && filled_ == 0) return Step::done;
    std::byte* const slot = port.tx_slot(tx_);
    if (slot == nullptr) return result;
    if (next_ < kept.tokens.size() && filled_ < per_slot) {
      const ForwardTokens::Token& token = kept.tokens[next_];
      list_.clear();
      for (std::uint32_t i = 0; i < token.count; ++i) {
        const ForwardTerm& term = kept.terms[next_term_ + i];
        list_.add(form, term);
        ++pulled[term.local_rank];
      }
      std::byte* const record = slot + sizeof(ipc::ChunkHeader) + filled_ * form.stride;
      const ipc::CombineRecord head{token.token, {}};
      std::memcpy(record, &head, sizeof(head));
      const ReduceGroup group = list_.group(form);
      reduce_rows(record + sizeof(head), form.wire, &group, 1, form.hidden, StoreMode::temporal);
      next_term_ += token.count;
      ++next_;
      ++filled_;
      result = Step::progressed;
    }
    if (next_ < kept.tokens.size() && filled_ < per_slot) continue;
    ipc::ChunkHeader header{};
    header.kind = static_cast<std::uint8_t>(ipc::ChunkKind::combine);
    header.channel = ring_.channel;
    header.epoch = form.epoch;
    header.op = form.op;
    header.home = ring_.home;
    header.writer = ring_.forwarder;
    header.records = filled_;
    header.stride = form.stride;
    header.bytes = static_cast<std::uint32_t>(sizeof(header)) + filled_ * form.stride;
    if (!port.submit(tx_, header)) return result;
    filled_ = 0;
    result = Step::progressed;
  }
  return next_ == kept.tokens.size() && filled_ == 0 ? Step::done : Step::progressed;
}

}  // namespace railhead::kernels
