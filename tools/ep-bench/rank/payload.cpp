#include "tools/ep-bench/rank/payload.hpp"

#include <cstring>

#include "tests/reference/random_case.hpp"
#include "tools/ep-bench/routing_hash.hpp"

namespace railhead::bench {
namespace {

constexpr std::size_t kStarts = 65536;

}  // namespace

Payload::Payload(const Workload& work)
    : row_bytes_(work.row_bytes()),
      element_bytes_(reference::size_of(number_type(work.type))),
      seed_(work.seed),
      pattern_(reference::random_values(number_type(work.type), kStarts + work.hidden, work.seed)) {}

std::span<const std::byte> Payload::row(std::uint32_t rank, std::uint64_t batch, std::uint32_t token) const {
  const std::size_t start = hash_words({seed_, rank, batch, token}) % kStarts;
  return std::span(pattern_).subspan(start * element_bytes_, row_bytes_);
}

void Payload::fill(std::uint32_t rank, std::uint64_t batch, std::span<std::byte> x) const {
  for (std::size_t token = 0; token * row_bytes_ < x.size(); ++token) {
    const auto from = row(rank, batch, static_cast<std::uint32_t>(token));
    std::memcpy(x.data() + token * row_bytes_, from.data(), row_bytes_);
  }
}

}  // namespace railhead::bench
