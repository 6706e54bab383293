#include <cstring>
#include <string>

#include "kernels/host/dispatch_roles.hpp"

namespace railhead::kernels {

ForwardRole::ForwardRole(const ipc::RingEnd& ring, std::uint32_t rx, std::uint32_t expected, const ExpertMap& map)
    : ring_(ring),
      rx_(rx),
      expected_(expected),
      last_expert_(map.experts_in(ring.domain).size(), -1),
      last_rank_(map.ranks_in(ring.domain).size(), -1) {}

Status ForwardRole::broken(const std::string& what) const {
  return {Code::protocol, "rank " + std::to_string(ring_.home) + " channel " + std::to_string(ring_.channel) +
                              " sent a dispatch chunk that breaks the rules: " + what};
}

Result<Step> ForwardRole::step(const ChunkForm& form, const ExpertMap& map, const Route& route, RailPort& port,
                               RowWriter& writer, ForwardTokens* kept) {
  std::uint32_t budget = kStepRecords;
  bool progressed = false;
  while (budget > 0 && taken_ < expected_) {
    auto chunk = port.rx_chunk(rx_);
    if (!chunk) return fail(broken(chunk.error().message()));
    if (chunk->records == nullptr) return progressed ? Step::progressed : Step::blocked;
    if (auto good = check_chunk(form, chunk->header); !good) return fail(good.error());
    for (; budget > 0 && in_chunk_ < chunk->header.records; --budget, ++in_chunk_, ++taken_) {
      if (auto good = take(form, map, route, chunk->records + in_chunk_ * form.record.stride, writer, kept); !good) {
        return fail(good.error());
      }
    }
    progressed = true;
    if (in_chunk_ < chunk->header.records) break;
    in_chunk_ = 0;
    port.release(rx_);
  }
  return taken_ == expected_ ? Step::done : Step::progressed;
}

Result<void> ForwardRole::check_chunk(const ChunkForm& form, const ipc::ChunkHeader& header) const {
  const bool fits = header.kind == static_cast<std::uint8_t>(ipc::ChunkKind::dispatch) && header.epoch == form.epoch &&
                    header.op == form.op && header.home == ring_.home && header.channel == ring_.channel &&
                    header.stride == form.record.stride;
  if (!fits) {
    return fail(broken("kind " + std::to_string(header.kind) + " op " + std::to_string(header.op) + " home " +
                       std::to_string(header.home) + " stride " + std::to_string(header.stride) + " where op " +
                       std::to_string(form.op) + " stride " + std::to_string(form.record.stride) + " was due"));
  }
  if (header.records - in_chunk_ > expected_ - taken_) {
    return fail(broken(std::to_string(taken_ + header.records - in_chunk_) + " records, its header promised " +
                       std::to_string(expected_)));
  }
  return {};
}

Result<void> ForwardRole::take(const ChunkForm& form, const ExpertMap& map, const Route& route, const std::byte* record,
                               RowWriter& writer, ForwardTokens* kept) {
  ipc::DispatchRecord head;
  std::memcpy(&head, record, sizeof(head));
  if (head.token <= last_token_ && last_token_ >= 0)
    return fail(broken("token " + std::to_string(head.token) + " after " + std::to_string(last_token_)));
  if (head.placements == 0 || head.placements > form.topk) {
    return fail(broken(std::to_string(head.placements) + " placements, topk is " + std::to_string(form.topk)));
  }
  last_token_ = head.token;
  uses_.clear();
  for (std::uint32_t i = 0; i < head.placements; ++i) {
    ipc::PlacementRecord p;
    std::memcpy(&p, record + form.record.placements + i * sizeof(p), sizeof(p));
    if (p.expert >= last_expert_.size())
      return fail(broken("expert " + std::to_string(p.expert) + " of " + std::to_string(last_expert_.size())));
    const ExpertHome& home = map.home(map.experts_in(ring_.domain)[p.expert]);
    if (!uses_.empty() && p.expert <= uses_.back().expert) return fail(broken("placements out of order"));
    if (auto good = check_use(route, p, home); !good) return good;
    uses_.push_back({home.local_rank, p.expert, p.slot, p.expert_ordinal, p.rank_ordinal, p.weight});
  }
  const std::byte* const side = form.side_bytes == 0 ? nullptr : record + form.record.side;
  writer.write(ring_.home, head.token, uses_.data(), head.placements, record + form.record.payload, side);
  if (kept == nullptr) return {};
  const std::size_t before = kept->terms.size();
  resolve_terms(route, ring_.home, uses_.data(), head.placements, kept->terms);
  kept->tokens.push_back({head.token, static_cast<std::uint32_t>(kept->terms.size() - before)});
  return {};
}

Result<void> ForwardRole::check_use(const Route& route, const ipc::PlacementRecord& p, const ExpertHome& home) {
  if (p.expert_ordinal <= last_expert_[p.expert] && last_expert_[p.expert] >= 0) {
    return fail(broken("expert ordinal " + std::to_string(p.expert_ordinal) + " after " +
                       std::to_string(last_expert_[p.expert])));
  }
  last_expert_[p.expert] = p.expert_ordinal;
  if (route.layout == ipc::Layout::expert) {
    const std::uint64_t row = std::uint64_t{route.expert_bases.base(ring_.home, p.expert)} + p.expert_ordinal;
    if (row < route.expert_bases.limit(ring_.home, p.expert)) return {};
    return fail(broken("expert ordinal " + std::to_string(p.expert_ordinal) + " beyond the promised count"));
  }
  const bool same_token = !uses_.empty() && uses_.back().local_rank == home.local_rank;
  const bool rises = same_token ? p.rank_ordinal == last_rank_[home.local_rank]
                                : static_cast<std::int64_t>(p.rank_ordinal) > last_rank_[home.local_rank];
  if (!rises) {
    return fail(broken("rank ordinal " + std::to_string(p.rank_ordinal) + " after " +
                       std::to_string(last_rank_[home.local_rank])));
  }
  last_rank_[home.local_rank] = p.rank_ordinal;
  const std::uint64_t row = std::uint64_t{route.rank_bases.base(ring_.home, home.local_rank)} + p.rank_ordinal;
  if (row < route.rank_bases.limit(ring_.home, home.local_rank)) return {};
  return fail(broken("rank ordinal " + std::to_string(p.rank_ordinal) + " beyond the promised count"));
}

void resolve_terms(const Route& route, std::uint32_t source, const RowUse* uses, std::uint32_t count,
                   std::vector<ForwardTerm>& out) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const RowUse& use = uses[i];
    if (route.layout == ipc::Layout::expert) {
      out.push_back({route.expert_bases.base(source, use.expert) + use.expert_ordinal, use.local_rank, 0, use.weight});
    } else if (i == 0 || uses[i - 1].local_rank != use.local_rank) {
      out.push_back({route.rank_bases.base(source, use.local_rank) + use.rank_ordinal, use.local_rank, 0, 1.0F});
    }
  }
}

}  // namespace railhead::kernels
