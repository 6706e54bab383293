// A dispatch in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <vector>

#include "client/handle.hpp"
#include "client/op.hpp"
#include "kernels/host/dispatch_roles.hpp"
#include "kernels/host/row_writer.hpp"

namespace railhead::client {

// What the caller asked for, checked (client/arguments.hpp).
struct DispatchRequest {
  kernels::TokenData data;
  kernels::DataType type = kernels::DataType::bf16;
  std::uint32_t side_bytes = 0;
  bool cached = false;
  bool plan_only = false;  // the place comes with a later run()
  void* out = nullptr;
  std::uint64_t out_rows = 0;
};

class DispatchOp final : public Op {
 public:
  // The handle's plan is built (or kept, for a cached dispatch).
  DispatchOp(std::shared_ptr<Handle> handle, DispatchRequest request, Call call);

  Result<void> prepare(GroupContext& group) override;
  // No more handles can live.
  [[nodiscard]] Status refusal(const GroupContext& group) const override;
  void withdraw(GroupContext& group) noexcept override;
  void admit(GroupContext& group, std::uint64_t number) noexcept override;
  Result<kernels::Step> step(GroupContext& group, const Op* prior) override;
  void cancel() override;
  [[nodiscard]] Waiting waiting(const GroupContext& group) const override;
  [[nodiscard]] bool sent(std::size_t ring) const override { return sends_[ring].done; }
  [[nodiscard]] bool received(std::size_t ring) const override;
  [[nodiscard]] std::uint64_t rows() const override { return received_.received; }
  // Its place is the caller's to name: planned, or given too small a one.
  [[nodiscard]] bool waits_for_caller() const override { return counted_ && !may_run_; }

  // Counts are known: rows that this rank will receive, with padding.
  [[nodiscard]] bool counted() const noexcept { return counted_; }
  [[nodiscard]] std::uint64_t output_rows() const noexcept { return received_.row_count; }
  // The caller's place does not hold them: waits for a run() with a larger one.
  [[nodiscard]] bool too_small() const noexcept { return too_small_; }
  [[nodiscard]] std::uint64_t out_rows() const noexcept { return request_.out_rows; }
  // The place for the rows; from now on the operation can move. out null: the arena.
  void run(void* out, std::uint64_t out_rows);
  // Its handle is released: nobody can run it any more. Where it waits for that, now or once the counts are known, it
  // goes through, for the others, and its rows are dropped. Where no event says when, it goes on with a copy of what
  // the caller gave; false when there is no memory for one.
  bool abandon() noexcept;
  [[nodiscard]] bool dropped() const noexcept { return dropped_; }
  [[nodiscard]] const std::shared_ptr<Handle>& handle() const noexcept { return handle_; }
  [[nodiscard]] const Received& output() const noexcept { return received_; }

 private:
  void finish(GroupContext& group) override;
  Result<void> offer(GroupContext& group);
  [[nodiscard]] std::uint64_t forecast(const GroupContext& group) const;
  Result<void> take_slices(GroupContext& group);
  Result<void> count(GroupContext& group);
  bool keep_data() noexcept;
  void drop() noexcept;
  Result<void> place(GroupContext& group);
  Result<bool> open_outputs(GroupContext& group);
  Result<bool> move(GroupContext& group, const Op* prior, bool& progressed);
  bool send(GroupContext& group, const Op* prior, bool& progressed);
  Result<bool> arrived(GroupContext& group) const;
  void pad(GroupContext& group);
  [[nodiscard]] std::uint64_t meta_bytes(std::uint64_t rows) const;

  std::shared_ptr<Handle> handle_;
  DispatchRequest request_;
  std::unique_ptr<std::byte[]> kept_;  // the caller's rows and side data, once it may have freed them
  kernels::ChunkForm form_;
  bool counted_ = false;
  bool may_run_;
  bool too_small_ = false;
  bool abandoned_ = false;
  bool dropped_ = false;
  bool placed_ = false;
  bool opened_ = false;
  bool moved_ = false;

  Received received_;
  std::uint64_t offered_rows_ = 0;
  bool copy_out_ = false;  // the caller's memory is outside the arena
  ipc::SpanRef rows_ref_;

  std::vector<kernels::Tracked<kernels::SendRole>> sends_;
  std::pmr::vector<kernels::Tracked<kernels::LocalRole>> locals_{&memory_};
  std::vector<kernels::Tracked<kernels::ForwardRole>> forwards_;
  std::pmr::vector<kernels::Output> outputs_{&memory_};  // by local rank
  kernels::RowWriter writer_;
};

// With the two words that make_shared adds it is no larger than the blocks that glibc keeps in a list of each thread:
// beyond them a dispatch goes to the heap itself, under its lock: 410 instructions more of 13,900 that one token takes.
static_assert(!kInlineTables || sizeof(DispatchOp) + 2 * sizeof(void*) <= 1032);

}  // namespace railhead::client
