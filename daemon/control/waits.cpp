#include "daemon/control/waits.hpp"

#include "ipc/clock.hpp"

namespace railhead::daemon {

std::vector<WaitView> waits_of(const LocalGroup& group) {
  std::vector<WaitView> out;
  if (group.state() != LocalGroup::State::running) return out;
  for (const auto& member : group.members()) {
    if (!member.present) continue;
    const std::uint32_t local = group.shape()->local_of(member.rank);
    const ipc::LiveWords& live = group.segment().live(local);
    const std::uint64_t completed = group.segment().completed(local);
    WaitView view;
    view.rank = member.rank;
    // relaxed: diagnostics; a mixed set is a stale line.
    view.op = ipc::load_relaxed(live.waiting_op);
    if (view.op <= completed || view.op > ipc::load_relaxed(live.planned) + group.params().depth) view.op = 0;
    if (view.op == 0) continue;
    const std::uint64_t packed = ipc::load_relaxed(live.waiting_for);
    view.phase = ipc::phase_name(static_cast<ipc::WaitPhase>(packed >> 56));
    const auto peer = static_cast<std::uint16_t>(packed >> 40);
    view.peer = peer == ipc::Poison::kNoRank ? -1 : peer;
    view.got = static_cast<std::uint32_t>(packed >> 20) & 0xfffffU;
    view.of = static_cast<std::uint32_t>(packed) & 0xfffffU;
    const std::uint64_t since = ipc::load_relaxed(live.waiting_since_ns);
    const std::uint64_t now = ipc::steady_ns();
    view.since_ms = now > since ? (now - since) / 1'000'000U : 0;
    out.push_back(view);
  }
  for (RefusedCallMessage& call : group.refused_calls()) {
    WaitView view;
    view.rank = call.rank;
    view.refused_op = call.op;
    view.reason = std::move(call.reason);
    out.push_back(std::move(view));
  }
  return out;
}

std::string sentence(const WaitView& w) {
  const std::string rank = "rank " + std::to_string(w.rank);
  if (w.op == 0) {
    return rank + " refused its call of op " + std::to_string(w.refused_op) + " and has not made it again: " + w.reason;
  }
  std::string text =
      rank + " has waited " + std::to_string(w.since_ms) + " ms in op " + std::to_string(w.op) + ": phase " + w.phase;
  if (w.peer >= 0) text += ", for rank " + std::to_string(w.peer);
  return text + ", got " + std::to_string(w.got) + " of " + std::to_string(w.of);
}

}  // namespace railhead::daemon
