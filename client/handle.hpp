// A handle: the routing of one dispatch and what belongs to it on this rank.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/arena.hpp"
#include "client/spare_tables.hpp"
#include "kernels/host/row_meta.hpp"
#include "kernels/host/types.hpp"

namespace railhead::client {

// Rows and metadata that one dispatch received; the blocks go back to the arena with the handle.
struct Received {
  Block own_rows;  // empty when the caller gave the place
  Block meta;
  std::byte* rows = nullptr;
  std::uint64_t row_count = 0;
  std::uint64_t received = 0;
  kernels::RowMeta fields;
};

// State changes under the group lock; after `ready` everything but `ended_by` and `cached` is constant.
struct Handle {
  enum class State : std::uint8_t {
    planning,  // its dispatch is in flight
    ready,
    failed,
  };

  Handle(std::shared_ptr<Arena> owner, std::shared_ptr<SpareTables> spare_tables)
      : arena(std::move(owner)), spares(std::move(spare_tables)), tables(spares->take()) {
    route.op = 0;
  }
  ~Handle() {
    give_back(received);
    if (cached) give_back(*cached);
    spares->put(std::move(tables));
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void give_back(const Received& memory) const { arena->release(memory.own_rows, memory.meta); }

  std::shared_ptr<Arena> arena;
  std::shared_ptr<SpareTables> spares;
  std::unique_ptr<Tables> tables;
  kernels::Route& route = tables->route;
  std::vector<std::uint32_t>& slices = tables->slices;
  std::vector<std::int32_t>& expert_counts = tables->expert_counts;
  std::vector<std::int32_t>& expert_offsets = tables->expert_offsets;
  std::vector<std::int64_t>& expert_offsets64 = tables->expert_offsets64;
  State state = State::planning;
  std::uint32_t tokens = 0;
  Received received;
  std::optional<Received> cached;  // of the newest cached dispatch
  std::int64_t ended_by = -1;      // rank whose header released this routing

  // Rows that a combine of this handle takes from this rank.
  [[nodiscard]] std::uint64_t row_count(std::uint32_t local) const { return route.output_rows(local); }
};

}  // namespace railhead::client
