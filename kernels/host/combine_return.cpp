#include <cstring>

#include "kernels/host/combine_roles.hpp"

namespace railhead::kernels {

void TermList::clear() {
  rows_.clear();
  weights_.clear();
}

void TermList::add(const CombineForm& form, std::span<Input> inputs, const ForwardTerm& term) {
  Input& input = inputs[term.local_rank];
  rows_.push_back(input.rows + std::uint64_t{term.row} * form.row_bytes());
  weights_.push_back(term.weight);
  ++input.pulled;
}

ReduceGroup TermList::group(const CombineForm& form) const {
  return {rows_.data(), form.weighted ? weights_.data() : nullptr, rows_.size(), form.element};
}

Step ReturnRole::step(const CombineForm& form, const ForwardTokens& kept, RailPort& port, std::span<Input> inputs) {
  ipc::ChunkHeader header{};
  header.kind = static_cast<std::uint8_t>(ipc::ChunkKind::combine);
  header.channel = ring_.channel;
  header.epoch = form.epoch;
  header.op = form.op;
  header.home = ring_.home;
  header.writer = ring_.forwarder;
  header.stride = form.stride;
  return chunks_.step(port, header, kept.tokens.size(),
                      [&](std::size_t i, std::byte* record) { append(form, kept, i, record, inputs); });
}

void ReturnRole::append(const CombineForm& form, const ForwardTokens& kept, std::size_t i, std::byte* record,
                        std::span<Input> inputs) {
  const ForwardTokens::Token& token = kept.tokens[i];
  list_.clear();
  for (std::uint32_t t = 0; t < token.count; ++t) {
    list_.add(form, inputs, kept.terms[next_term_ + t]);
  }
  next_term_ += token.count;
  const ipc::CombineRecord head{token.token, {}};
  std::memcpy(record, &head, sizeof(head));
  const ReduceGroup group = list_.group(form);
  reduce_rows(record + sizeof(head), form.wire, &group, 1, form.hidden, StoreMode::temporal);
}

}  // namespace railhead::kernels
