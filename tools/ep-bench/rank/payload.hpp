// The rows that ranks send: pieces of one random pattern, so that making or checking a row costs no more than a copy.
#pragma once

#include <cstdint>
#include <span>

#include "tests/reference/model.hpp"
#include "tools/ep-bench/workload.hpp"

namespace railhead::bench {

// Immutable. Every process with the same workload has the same rows.
class Payload {
 public:
  explicit Payload(const Workload& work);

  // The row of a token; another rank, batch or token has, but for chance (1 in 65536), another one.
  [[nodiscard]] std::span<const std::byte> row(std::uint32_t rank, std::uint64_t batch, std::uint32_t token) const;
  // x of one rank: its rows, dense.
  void fill(std::uint32_t rank, std::uint64_t batch, std::span<std::byte> x) const;

 private:
  std::size_t row_bytes_;
  std::size_t element_bytes_;
  std::uint64_t seed_;
  reference::Bytes pattern_;
};

}  // namespace railhead::bench
