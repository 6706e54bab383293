// One rank's part in a round: draws the routing, dispatches, returns the rows as its experts' outputs, combines.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <railhead/railhead.hpp>
#include <vector>

#include "tools/ep-bench/rank/control.hpp"
#include "tools/ep-bench/rank/payload.hpp"
#include "tools/ep-bench/rank/verify.hpp"
#include "tools/ep-bench/routing.hpp"
#include "tools/ep-bench/tensor.hpp"
#include "tools/ep-bench/workload.hpp"

namespace railhead::bench {

// Steady clock, nanoseconds: one clock for all processes of a host.
std::int64_t now_ns();

// The library's status and sentence, without the name in front that what() has: whoever prints the status says it.
Status status_of(const Error& error);

// Throws railhead::Error where the library fails. One thread.
class Member {
 public:
  Member(const Workload& work, std::uint32_t rank);
  // The workload's routing: invalid_argument or system.
  Status open();

  // Called by itself: the collective creation of the group.
  void join(const Session& session, const UniqueId& id);
  void leave() { group_.reset(); }
  [[nodiscard]] const Group& group() const { return *group_; }

  // A round of one or two batches; prepare() is what is not measured before it. `verify` compares with the model
  // afterwards; such a round sends other rows than the one before it.
  void prepare(std::uint64_t round, bool verify);
  void run(RoundSample& sample);
  [[nodiscard]] Status verify(std::uint64_t round) const;
  void release();  // the handles of the round
  // release(), and what the library counted.
  void finish(RoundSample& sample);

 private:
  struct Batch {
    Routing routing;
    Tensor<std::byte> x, y;
    Tensor<std::byte> rows;  // only where the outputs are not in place
    rh_dispatch_result result{};
    Handle handle;
  };

  [[nodiscard]] rh_dispatch_args dispatch_args(const Batch& batch) const;
  [[nodiscard]] rh_combine_args combine_args(Batch& batch) const;
  void dispatch(Batch& batch) const;
  void run_overlapped(std::int64_t start, std::int64_t& middle);

  const Workload& work_;
  std::uint32_t rank_;
  Payload payload_;
  std::unique_ptr<RoutingSource> source_;
  std::optional<Verifier> verifier_;
  std::optional<Group> group_;
  std::vector<Batch> batches_;
  bool filled_ = false;
};

}  // namespace railhead::bench
