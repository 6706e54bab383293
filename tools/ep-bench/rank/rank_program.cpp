#include "tools/ep-bench/rank/rank_program.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <railhead/railhead.hpp>
#include <vector>

#include "tools/ep-bench/rank/control.hpp"
#include "tools/ep-bench/rank/member.hpp"
#include "tools/ep-bench/rank/own_core.hpp"

namespace railhead::bench {
namespace {

constexpr std::size_t kSlots = 2;  // groups at one time

class RankProgram {
 public:
  RankProgram(const Workload& work, std::uint32_t rank, const std::string& daemon, Control control)
      : work_(work), rank_(rank), session_(daemon, "ep-bench"), control_(std::move(control)) {}

  Status perform(const Command& command, Answer& answer) {
    try {
      return carry_out(command, answer);
    } catch (const Error& error) {
      return status_of(error);
    }
  }

 private:
  Status carry_out(const Command& command, Answer& answer) {
    if (command.slot >= kSlots) return {Code::invalid_argument, "no such group slot"};
    auto& member = members_[command.slot];
    switch (command.verb) {
      case Verb::open_group: return open_group(member, answer);
      case Verb::close_group: member.reset(); return {};
      case Verb::rounds: return rounds(*member, command);
      case Verb::loop: return loop(*member, command, answer);
      case Verb::await_loss: return await_loss(*member, answer);
    }
    return {Code::unsupported, "no such command"};
  }

  Status open_group(std::unique_ptr<Member>& member, Answer& answer) {
    member = std::make_unique<Member>(work_, rank_);
    if (Status opened = member->open(); !opened.ok()) return opened;
    if (Status together = control_.barrier(deadline()); !together.ok()) return together;
    const std::int64_t start = now_ns();
    if (rank_ == 0) control_.id() = session_.unique_id();
    if (Status spread = control_.barrier(deadline()); !spread.ok()) return spread;
    member->join(session_, control_.id());
    answer.elapsed_ns = now_ns() - start;
    return {};
  }

  Status rounds(Member& member, const Command& command) {
    for (std::uint32_t i = 0; i < command.count; ++i) {
      RoundSample& sample = control_.sample(rank_, i);
      member.prepare(command.first + i, command.verify != 0);
      if (Status together = control_.barrier(deadline()); !together.ok()) return together;
      member.run(sample);
      if (command.verify != 0) {
        if (Status right = member.verify(command.first + i); !right.ok()) return right;
      }
      member.finish(sample);
      if (rank_ == 0) control_.set_progress(i + 1);
    }
    return {};
  }

  // The same tokens over and over, so that nothing but the operations is in the time; the median of `count` batches. On
  // a core of its own, like the processes of the bare ping-pong: where the scheduler puts two that just woke is not
  // what is measured.
  Status loop(Member& member, const Command& command, Answer& answer) {
    const OwnCore core(rank_);
    RoundSample sample;
    member.prepare(command.first, false);
    if (Status together = control_.barrier(deadline()); !together.ok()) return together;
    std::vector<std::int64_t> batches(command.count);
    for (std::int64_t& batch : batches) {
      const std::int64_t start = now_ns();
      for (std::uint32_t i = 0; i < kLoopBatch; ++i) {
        member.run(sample);
        member.release();
      }
      batch = now_ns() - start;
    }
    std::nth_element(batches.begin(), batches.begin() + batches.size() / 2, batches.end());
    answer.elapsed_ns = batches[batches.size() / 2];
    return {};
  }

  Status await_loss(Member& member, Answer& answer) {
    RoundSample sample;
    member.prepare(0, false);
    try {
      control_.add_progress();
      member.run(sample);
    } catch (const Error& error) {
      answer.at_ns = now_ns();
      if (error.status() == RH_RANK_LOST) return {};
      throw;
    }
    return {Code::internal, "a dispatch without the lost rank ended well"};
  }

  [[nodiscard]] ipc::Deadline deadline() const { return ipc::Deadline::after(std::chrono::seconds(work_.timeout_s)); }

  const Workload& work_;
  std::uint32_t rank_;
  Session session_;
  Control control_;
  std::array<std::unique_ptr<Member>, kSlots> members_;
};

}  // namespace

int rank_main(const RankArguments& arguments) {
  const auto work = load_workload(arguments.workload);
  if (!work) return report_failure(work.error());
  if (arguments.rank >= work->ranks()) {
    return report_failure({Code::invalid_argument, "rank is beyond the workload's ranks"});
  }
  auto control = Control::join(work->ranks());
  if (!control) return report_failure(control.error());
  try {
    RankProgram program(*work, arguments.rank, arguments.daemon, std::move(*control));
    return serve_commands([&](const Command& command, Answer& answer) { return program.perform(command, answer); });
  } catch (const Error& error) {
    return report_failure(status_of(error));
  }
}

}  // namespace railhead::bench
