// The tables of a dispatch's routing, and those of released handles kept for the next ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/host/route.hpp"

namespace railhead::client {

// Whatever a routing uses of it is written anew; what is kept from one to the next is capacity alone.
struct Tables {
  kernels::Route route;
  std::vector<std::uint32_t> slices;  // of all ranks, for this domain: our copy
  std::vector<std::int32_t> expert_counts;
  std::vector<std::int32_t> expert_offsets;
  std::vector<std::int64_t> expert_offsets64;
};

// A dispatch of one token makes about twenty small tables, a large one megabytes that would be mapped and cleared
// again. Any thread.
class SpareTables {
 public:
  SpareTables() { spares_.reserve(kMost); }  // put() comes from destructors and must not fail

  std::unique_ptr<Tables> take() {
    const std::lock_guard lock(mutex_);
    if (spares_.empty()) return std::make_unique<Tables>();
    auto tables = std::move(spares_.back());
    spares_.pop_back();
    return tables;
  }

  void put(std::unique_ptr<Tables> tables) {
    const std::lock_guard lock(mutex_);
    if (spares_.size() < kMost) spares_.push_back(std::move(tables));
  }

 private:
  static constexpr std::size_t kMost = 2;  // a layer releases one handle before it makes the next, two with two batches

  std::mutex mutex_;
  std::vector<std::unique_ptr<Tables>> spares_;
};

}  // namespace railhead::client
