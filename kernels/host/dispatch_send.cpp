#include <cstring>

#include "kernels/host/dispatch_roles.hpp"

namespace railhead::kernels {

Step SendRole::step(const ChunkForm& form, const Plan& plan, const TokenData& data, RailPort& port) {
  const auto runs = plan.runs(ring_.domain, ring_.channel);
  ipc::ChunkHeader header{};
  header.kind = static_cast<std::uint8_t>(ipc::ChunkKind::dispatch);
  header.channel = ring_.channel;
  header.epoch = form.epoch;
  header.op = form.op;
  header.home = ring_.home;
  header.writer = ring_.home;
  header.stride = form.record.stride;
  return chunks_.step(port, header, runs.size(),
                      [&](std::size_t i, std::byte* record) { append(form, plan, data, runs[i], record); });
}

void SendRole::append(const ChunkForm& form, const Plan& plan, const TokenData& data, const Run& run,
                      std::byte* record) const {
  ipc::DispatchRecord head{};
  head.token = run.token;
  head.placements = static_cast<std::uint16_t>(run.count);
  std::memcpy(record, &head, sizeof(head));
  std::byte* at = record + form.record.placements;
  for (const Placement& p : plan.placements(run)) {
    const ipc::PlacementRecord out{p.expert_ordinal, p.rank_ordinal, p.expert, p.slot, p.weight};
    std::memcpy(at, &out, sizeof(out));
    at += sizeof(out);
  }
  if (form.side_bytes != 0) std::memcpy(record + form.record.side, data.side_of(run.token), form.side_bytes);
  // Temporal: the proxy's send reads the slot soon after.
  copy_row(record + form.record.payload, data.row(run.token), form.row_bytes, StoreMode::temporal);
}

}  // namespace railhead::kernels
