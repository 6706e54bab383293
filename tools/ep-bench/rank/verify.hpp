// Compares what one rank received and got back with the plain reference model.
#pragma once

#include <cstdint>

#include "tests/reference/model.hpp"
#include "tools/ep-bench/rank/payload.hpp"
#include "tools/ep-bench/routing.hpp"
#include "tools/ep-bench/workload.hpp"

namespace railhead::bench {

// All references must outlive it. Errors are Code::internal: "batch 7: row 12 (rank 1, token 5): ...".
class Verifier {
 public:
  Verifier(const Workload& work, const RoutingSource& routing, const Payload& payload, std::uint32_t rank)
      : work_(work), routing_(routing), payload_(payload), rank_(rank) {}

  // Counts, offsets, maps, weights, local ids, and every byte of every row.
  [[nodiscard]] Status received(std::uint64_t batch, const rh_dispatch_result& result) const;
  // Bit for bit, for experts that return their rows as they came.
  [[nodiscard]] Status combined(std::uint64_t batch, const std::byte* y) const;

 private:
  [[nodiscard]] reference::Case empty_case() const;
  [[nodiscard]] Status rows_match(const reference::Received& want, std::uint64_t batch,
                                  const rh_dispatch_result& result) const;

  const Workload& work_;
  const RoutingSource& routing_;
  const Payload& payload_;
  std::uint32_t rank_;
};

}  // namespace railhead::bench
