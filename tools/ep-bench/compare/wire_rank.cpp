#include "tools/ep-bench/compare/wire_rank.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "tools/ep-bench/compare/wire_session.hpp"
#include "tools/ep-bench/rank/member.hpp"

namespace railhead::bench {
namespace {

constexpr std::byte kFill{0x5a};

ipc::GroupParams params_of(const Workload& work) {
  ipc::GroupParams params;
  params.ranks = work.ranks();
  params.experts = work.experts;
  params.hidden = work.hidden;
  params.topk = work.top_k;
  if (work.channels != 0) params.channels = work.channels;
  params.ring_slots = work.ring_slots;
  params.chunk_bytes = work.chunk_bytes;
  return params;
}

class WireRank {
 public:
  WireRank(const Workload& work, std::uint32_t rank, std::unique_ptr<WireSession> session, Control control)
      : work_(work), rank_(rank), session_(std::move(session)), control_(std::move(control)) {}

  Status perform(const Command& command, Answer& answer) {
    switch (command.verb) {
      case Verb::open_group: return open_group();
      case Verb::loop: return move_slots(command.count, answer);
      default: return {Code::unsupported, "a wire rank opens its group and moves slots, no more"};
    }
  }

 private:
  Status open_group() {
    if (rank_ == 0) {
      const auto id = session_->unique_id();
      if (!id) return id.error();
      control_.id() = *id;
    }
    if (Status spread = control_.barrier(deadline()); !spread.ok()) return spread;
    if (Status joined = session_->join(control_.id(), rank_, params_of(work_), kFill); !joined.ok()) return joined;
    // All rings between the two ranks, in order: the tx ring i of rank 0 ends in the rx ring of its target.
    rings_ = ipc::RailRings(session_->shape(), rank_).tx_count();
    sent_.assign(rings_, 0);
    received_.assign(rings_, 0);
    return {};
  }

  Status move_slots(std::uint32_t count, Answer& answer) {
    target_ += (count + rings_ - 1) / rings_;
    if (Status together = control_.barrier(deadline()); !together.ok()) return together;
    const std::int64_t start = now_ns();
    Status status = rank_ == 0 ? pass_until([this](bool& over) { return send(over); })
                               : pass_until([this](bool& over) { return receive(over); });
    answer.elapsed_ns = now_ns() - start;
    return status;
  }

  // Passes until one says that it is over; waits as the library does while they find nothing to do.
  template <class Pass>
  Status pass_until(Pass pass) {
    const auto policy = ipc::WaitPolicy::for_load(2, std::max(1U, std::thread::hardware_concurrency()));
    const auto until = deadline();
    for (bool over = false; !over;) {
      const auto result = ipc::wait_until(session_->wake(), ipc::kWakeRail, until, policy, [&] { return pass(over); });
      if (result == ipc::WaitResult::poisoned) return {Code::aborted, "the group ended"};
      if (result == ipc::WaitResult::timeout) return {Code::timeout, "the slots stand still"};
      session_->ring_bell();
    }
    return {};
  }

  bool send(bool& over) {
    bool any = false;
    over = true;
    for (std::uint32_t tx = 0; tx < rings_; ++tx) {
      const std::uint64_t until = std::min(target_, session_->rail().granted(tx) + work_.ring_slots);
      const std::uint32_t bytes = session_->shape().slot_bytes();
      while (sent_[tx] < until && session_->rail().submit({ipc::RailVerb::chunk, static_cast<std::uint16_t>(tx),
                                                           static_cast<std::uint32_t>(sent_[tx] & 0xffffff), bytes})) {
        ++sent_[tx];
        any = true;
      }
      over = over && sent_[tx] == target_;
    }
    return any || over;
  }

  // Credits go back half a ring at a time, as the library gives them.
  bool receive(bool& over) {
    const std::uint64_t batch = std::max(1U, work_.ring_slots / 2);
    bool any = false;
    over = true;
    for (std::uint32_t rx = 0; rx < rings_; ++rx) {
      const std::uint64_t arrived = session_->rail().arrived(rx);
      const std::uint64_t owed = arrived - received_[rx];
      if ((owed >= batch || (owed > 0 && arrived == target_)) &&
          session_->rail().submit({ipc::RailVerb::credit, static_cast<std::uint16_t>(rx), 0, arrived})) {
        received_[rx] = arrived;
        any = true;
      }
      over = over && received_[rx] == target_;
    }
    return any || over;
  }

  [[nodiscard]] ipc::Deadline deadline() const { return ipc::Deadline::after(std::chrono::seconds(work_.timeout_s)); }

  const Workload& work_;
  std::uint32_t rank_;
  std::unique_ptr<WireSession> session_;
  Control control_;
  std::uint32_t rings_ = 0;
  std::uint64_t target_ = 0;  // slots of each ring, since the group began
  std::vector<std::uint64_t> sent_, received_;
};

}  // namespace

std::uint32_t wire_slot_bytes(const Workload& work) {
  return ipc::GroupShape(params_of(work), {1, work.domain_of_rank}).slot_bytes();
}

int wire_rank_main(const RankArguments& arguments) {
  const auto work = load_workload(arguments.workload);
  if (!work) return report_failure(work.error());
  auto control = Control::join(work->ranks());
  if (!control) return report_failure(control.error());
  auto session = WireSession::open(arguments.daemon);
  if (!session) return report_failure(session.error());
  WireRank rank(*work, arguments.rank, std::move(*session), std::move(*control));
  return serve_commands([&](const Command& command, Answer& answer) { return rank.perform(command, answer); });
}

}  // namespace railhead::bench
