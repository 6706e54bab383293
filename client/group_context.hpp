// What the operations of one group work on: shape, shared memory, rail, arenas. Used under the group lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/arena.hpp"
#include "client/handle_list.hpp"
#include "client/peer_arenas.hpp"
#include "ipc/layout/group_segment.hpp"
#include "ipc/layout/shape.hpp"
#include "kernels/host/combine_roles.hpp"
#include "kernels/host/rail_port.hpp"
#include "kernels/plan/placement.hpp"

namespace railhead::client {

// Of the handle of dispatch `handle_op`. An operation called before may use the handle and have its header still to
// publish: the header that ends the handle for the others is that of a later one.
struct Release {
  std::uint64_t handle_op;
  std::uint64_t earliest;  // number of the first operation called after it
};

struct GroupContext {
  ipc::GroupShape shape;
  kernels::ExpertMap experts;
  std::string name;  // as epctl and the daemon's log have it
  std::uint32_t rank;
  std::uint16_t domain;
  std::uint32_t local;  // position in the domain
  ipc::GroupSegment words;
  std::unique_ptr<kernels::RailPort> rail;  // null when there is one domain
  std::shared_ptr<Arena> arena;
  std::unique_ptr<PeerArenas> peers;
  // Handles that this rank released and whose release no header carried yet, in the order of their calls.
  std::vector<Release> releases;
  HandleList handles;
  kernels::TokenScratch scratch{};
  std::uint64_t last_rows[2] = {};  // by layout: what this rank's last dispatch received, with padding

  [[nodiscard]] std::uint32_t locals() const { return words.locals(); }
  [[nodiscard]] std::uint32_t rank_of_local(std::uint32_t l) const { return shape.ranks_of(domain)[l]; }

  // Our own arena or a mapped one, for at least this access.
  Result<std::byte*> resolve(std::uint32_t l, ipc::SpanRef ref, std::uint64_t bytes, ipc::Access access) {
    if (l != local) return peers->resolve(l, ref, bytes, access);
    std::byte* const own = arena->resolve(ref, bytes);
    if (own == nullptr) return fail(Code::internal, "a span of our own lies outside the arena");
    return own;
  }
};

}  // namespace railhead::client
