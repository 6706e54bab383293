// One operation of one rank: a dispatch or a combine, as a state machine that is stepped under the group lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

#include "client/group_context.hpp"
#include "client/inline_memory.hpp"
#include "ipc/clock.hpp"
#include "ipc/deadline.hpp"
#include "ipc/layout/group_segment.hpp"
#include "ipc/status.hpp"
#include "ipc/wire.hpp"
#include "kernels/host/dispatch_roles.hpp"
#include "kernels/host/row_writer.hpp"
#include "kernels/host/step.hpp"
#include "kernels/plan/plan.hpp"

namespace railhead::client {

// What an operation waits for, for `why` and for time-out messages.
struct Waiting {
  ipc::WaitPhase phase = ipc::WaitPhase::none;
  std::uint16_t peer = ipc::Poison::kNoRank;
  std::uint32_t got = 0;
  std::uint32_t of = 0;
};

struct OpTimes {
  std::uint64_t called_ns = 0;
  std::uint64_t headers_ns = 0;  // the last rank's call, or the arrival of its header on this host
  std::uint64_t done_ns = 0;
  std::int32_t last_rank = -1;
};

// When the application called, and until when the operation may take.
struct Call {
  std::uint64_t at_ns = 0;  // ipc::steady_ns()
  ipc::Deadline deadline = ipc::Deadline::never();
};

class Op {
 public:
  // What a dispatch of one channel on two ranks of one host needs.
  static constexpr std::size_t kInlineBytes =
      2 * sizeof(ipc::GroupSegment::Row) + sizeof(kernels::Tracked<kernels::LocalRole>) + 2 * sizeof(kernels::Output);

  Op(ipc::OpKind kind, Call call) : kind_(kind), deadline_(call.deadline), times_{.called_ns = call.at_ns} {}
  virtual ~Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  // Before the operation has a number: everything that can be refused (memory above all). After an error or an
  // exception the call did not happen, and the engine calls withdraw().
  virtual Result<void> prepare(GroupContext& group) = 0;
  // Why the call cannot happen as things are, however much room there is among the operations in flight.
  [[nodiscard]] virtual Status refusal(const GroupContext& /*group*/) const { return {}; }
  // Gives back to the arena whatever prepare() took before it failed.
  virtual void withdraw(GroupContext& group) noexcept = 0;
  // Does what can be done now. An error is one of the whole group. `prior`: the nearest older operation of the same
  // kind that is still in flight; rings are used in operation order.
  virtual Result<kernels::Step> step(GroupContext& group, const Op* prior) = 0;
  // The group ended before the operation did: forgets borrowed memory.
  virtual void cancel() = 0;
  [[nodiscard]] virtual Waiting waiting(const GroupContext& group) const = 0;
  [[nodiscard]] virtual bool sent(std::size_t ring) const = 0;      // this ring's role of a tx ring is through
  [[nodiscard]] virtual bool received(std::size_t ring) const = 0;  // this ring's role of an rx ring is through
  [[nodiscard]] virtual std::uint64_t rows() const = 0;
  // Nothing but another call of the application can move it.
  [[nodiscard]] virtual bool waits_for_caller() const { return false; }

  [[nodiscard]] ipc::OpKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] ipc::Deadline deadline() const noexcept { return deadline_; }
  [[nodiscard]] const OpTimes& times() const noexcept { return times_; }

  // The engine's: number at admission, result at the end. The wait for room among older operations is none for others.
  virtual void admit(GroupContext& group, std::uint64_t number) noexcept;
  void waited_for_room() { times_.called_ns = ipc::steady_ns(); }
  void conclude(const Status& result) noexcept;
  void finish_once(GroupContext& group);
  [[nodiscard]] bool concluded() const noexcept { return concluded_; }
  [[nodiscard]] const Status& result() const noexcept { return result_; }

 protected:
  // Everything has arrived: fills in results, gives back what was borrowed. Cannot fail.
  virtual void finish(GroupContext& group) = 0;
  // Publishes this rank's header to its domain and to the others, with the plan's slice for each, once the window is
  // open. True once everything is out.
  bool publish(GroupContext& group, const kernels::Plan& plan);
  [[nodiscard]] bool published() const noexcept { return published_; }
  // Looks for headers that were not seen yet and checks that they agree with ours. True when all are there; rows_ then
  // holds one row per rank. Error: disagreement, or a rank that left before this operation.
  Result<bool> collect(GroupContext& group);
  [[nodiscard]] bool have_locals() const noexcept { return locals_missing_ == 0; }
  [[nodiscard]] bool have_all() const noexcept { return missing_ == 0; }
  [[nodiscard]] const ipc::GroupSegment::Row& row_of(std::uint32_t rank) const { return rows_[rank]; }
  [[nodiscard]] Waiting waiting_for_headers(const GroupContext& group) const;

  // What its own kind of operation puts there before it has a number; publish() adds the rest.
  ipc::OpHeader header_{};
  // Before every table that uses it.
  InlineMemory<kInlineBytes> memory_;

 private:
  void take_releases(GroupContext& group);
  bool publish_remote(GroupContext& group, const kernels::Plan& plan);

  ipc::OpKind kind_;
  ipc::Deadline deadline_;
  std::uint64_t number_ = 0;
  OpTimes times_;
  bool finished_ = false;
  bool concluded_ = false;
  Status result_;

  bool published_ = false;
  bool on_board_ = false;
  std::size_t next_domain_ = 0;  // other domain whose header is to be submitted
  std::pmr::vector<ipc::GroupSegment::Row> rows_{&memory_};
  std::uint32_t missing_ = 0;
  std::uint32_t locals_missing_ = 0;
};

const char* op_name(ipc::OpKind kind) noexcept;

}  // namespace railhead::client
