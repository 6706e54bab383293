#include <cstring>
#include <string>

#include "kernels/host/combine_roles.hpp"

namespace railhead::kernels {

HomeRole::HomeRole(std::uint32_t rank, std::uint16_t domain, std::uint32_t channel,
                   std::span<const std::uint32_t> rings)
    : rank_(rank), domain_(domain), channel_(channel), sources_(rings.size()), waiting_for_(domain) {
  for (std::size_t d = 0; d < rings.size(); ++d) sources_[d].ring = rings[d];
}

Result<Step> HomeRole::step(const CombineForm& form, const Route& route, RailPort* port, std::span<Input> inputs,
                            TokenScratch& scratch) {
  const std::uint32_t first = channel_begin(route.plan.tokens(), route.plan.channels(), channel_);
  const std::uint32_t tokens = channel_begin(route.plan.tokens(), route.plan.channels(), channel_ + 1) - first;
  bool progressed = false;
  for (std::uint32_t budget = kStepRecords; budget > 0 && token_ < tokens; --budget, ++token_) {
    auto ready = gather(form, route, port);
    if (!ready) return fail(ready.error());
    if (!*ready) return progressed ? Step::progressed : Step::blocked;
    sum(form, route, inputs, scratch);
    advance(route, port);
    progressed = true;
  }
  return token_ == tokens ? Step::done : Step::progressed;
}

Result<bool> HomeRole::gather(const CombineForm& form, const Route& route, RailPort* port) {
  const std::uint32_t token = channel_begin(route.plan.tokens(), route.plan.channels(), channel_) + token_;
  std::uint16_t last = domain_;
  for (const Placement& p : route.plan.placements(token)) {
    if (p.domain == domain_ || p.domain == last) continue;
    last = p.domain;
    auto found = find_partial(form, p.domain, *port);
    if (!found) return found;
    if (!*found) {
      waiting_for_ = p.domain;
      return false;
    }
    ipc::CombineRecord head;
    std::memcpy(&head, sources_[p.domain].partial, sizeof(head));
    if (head.token != token) {
      return fail(Code::protocol, "domain " + std::to_string(p.domain) + " sent a partial sum of token " +
                                      std::to_string(head.token) + " where token " + std::to_string(token) +
                                      " of rank " + std::to_string(rank_) + " was due");
    }
  }
  return true;
}

Result<bool> HomeRole::find_partial(const CombineForm& form, std::uint16_t domain, RailPort& port) {
  Source& source = sources_[domain];
  auto chunk = port.rx_chunk(source.ring);
  if (!chunk) return fail(chunk.error());
  if (chunk->records == nullptr) return false;
  const ipc::ChunkHeader& header = chunk->header;
  const bool fits = header.kind == static_cast<std::uint8_t>(ipc::ChunkKind::combine) && header.epoch == form.epoch &&
                    header.op == form.op && header.home == rank_ && header.channel == channel_ &&
                    header.stride == form.stride;
  if (!fits) {
    return fail(Code::protocol, "rank " + std::to_string(header.writer) + " sent a combine chunk of op " +
                                    std::to_string(header.op) + " home " + std::to_string(header.home) + " where op " +
                                    std::to_string(form.op) + " home " + std::to_string(rank_) + " was due");
  }
  source.chunk_of = header.records;
  source.partial = chunk->records + source.in_chunk * form.stride;
  return true;
}

void HomeRole::sum(const CombineForm& form, const Route& route, std::span<Input> inputs, TokenScratch& scratch) {
  auto& uses = scratch.uses;
  auto& terms = scratch.terms;
  auto& list = scratch.list;
  auto& groups = scratch.groups;
  const std::uint32_t token = channel_begin(route.plan.tokens(), route.plan.channels(), channel_) + token_;
  const auto placements = route.plan.placements(token);
  uses.clear();
  list.clear();
  terms.clear();
  for (const Placement& p : placements) {
    if (p.domain != domain_) continue;
    uses.push_back({p.local_rank, p.expert, p.slot, p.expert_ordinal, p.rank_ordinal, p.weight});
  }
  resolve_terms(route, rank_, uses.data(), static_cast<std::uint32_t>(uses.size()), terms);
  for (const ForwardTerm& term : terms) list.add(form, inputs, term);
  // One group per domain that holds rows of this token, ascending: placements are sorted by domain.
  groups.clear();
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const std::uint16_t domain = placements[i].domain;
    if (i != 0 && placements[i - 1].domain == domain) continue;
    if (domain == domain_) {
      groups.push_back(list.group(form));
    } else {
      const void*& partial = sources_[domain].partial;
      partial = static_cast<const std::byte*>(partial) + sizeof(ipc::CombineRecord);
      groups.push_back({&partial, nullptr, 1, form.wire});
    }
  }
  reduce_rows(form.y + token * form.y_pitch, form.element, groups.data(), groups.size(), form.hidden, form.y_mode);
}

void HomeRole::advance(const Route& route, RailPort* port) {
  const std::uint32_t token = channel_begin(route.plan.tokens(), route.plan.channels(), channel_) + token_;
  std::uint16_t last = domain_;
  for (const Placement& p : route.plan.placements(token)) {
    if (p.domain == domain_ || p.domain == last) continue;
    last = p.domain;
    Source& source = sources_[p.domain];
    if (++source.in_chunk < source.chunk_of) continue;
    source.in_chunk = 0;
    port->release(source.ring);
  }
}

}  // namespace railhead::kernels
