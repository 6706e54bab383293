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
  ipc::ChunkHeader header{};
  header.kind = static_cast<std::uint8_t>(ipc::ChunkKind::combine);
  header.channel = ring_.channel;
  header.epoch = form.epoch;
  header.op = form.op;
  header.home = ring_.home;
  header.writer = ring_.forwarder;
  header.stride = form.stride;
  return chunks_.step(port, header, kept.tokens.size(),
                      [&](std::size_t i, std::byte* record) { append(form, kept, i, record, pulled); });
}

void ReturnRole::append(const CombineForm& form, const ForwardTokens& kept, std::size_t i, std::byte* record,
                        std::vector<std::uint32_t>& pulled) {
  const ForwardTokens::Token& token = kept.tokens[i];
  list_.clear();
  for (std::uint32_t t = 0; t < token.count; ++t) {
    const ForwardTerm& term = kept.terms[next_term_ + t];
    list_.add(form, term);
    ++pulled[term.local_rank];
  }
  next_term_ += token.count;
  const ipc::CombineRecord head{token.token, {}};
  std::memcpy(record, &head, sizeof(head));
  const ReduceGroup group = list_.group(form);
  reduce_rows(record + sizeof(head), form.wire, &group, 1, form.hidden, StoreMode::temporal);
}

}  // namespace railhead::kernels
