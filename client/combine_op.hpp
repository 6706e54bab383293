// A combine in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <vector>

#include "client/handle.hpp"
#include "client/op.hpp"
#include "kernels/host/combine_roles.hpp"

namespace railhead::client {

// What the caller asked for, checked (client/arguments.hpp).
struct CombineRequest {
  const std::byte* rows = nullptr;
  kernels::DataType type = kernels::DataType::bf16;
  kernels::DataType wire = kernels::DataType::bf16;
  bool weighted = false;
  std::byte* y = nullptr;
  std::uint64_t y_pitch = 0;
};

class CombineOp final : public Op {
 public:
  CombineOp(std::shared_ptr<Handle> handle, CombineRequest request, Call call)
      : Op(ipc::OpKind::combine, call), handle_(std::move(handle)), request_(request) {}

  Result<void> prepare(GroupContext& group) override;
  void withdraw(GroupContext& group) noexcept override { group.arena->release(staged_); }
  Result<kernels::Step> step(GroupContext& group, const Op* prior) override;
  void cancel() override {}
  [[nodiscard]] Waiting waiting(const GroupContext& group) const override;
  [[nodiscard]] bool sent(std::size_t ring) const override { return opened_ && returns_[ring].done; }
  [[nodiscard]] bool received(std::size_t channel) const override { return opened_ && homes_[channel].done; }
  [[nodiscard]] std::uint64_t rows() const override;

 private:
  void finish(GroupContext& group) override;
  Result<void> open_inputs(GroupContext& group);
  Result<bool> pull(GroupContext& group, const Op* prior, bool& progressed);
  Result<bool> released(GroupContext& group) const;

  std::shared_ptr<Handle> handle_;
  CombineRequest request_;
  kernels::CombineForm form_;
  Block staged_;  // copy of rows that lay outside the arena
  bool opened_ = false;
  bool pulled_all_ = false;
  std::pmr::vector<kernels::Input> inputs_{&memory_};  // by local rank
  std::vector<kernels::Tracked<kernels::ReturnRole>> returns_;
  std::pmr::vector<kernels::Tracked<kernels::HomeRole>> homes_{&memory_};
};

}  // namespace railhead::client
