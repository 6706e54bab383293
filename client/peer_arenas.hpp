// Our mappings of the arenas of the other ranks of this domain, made when an operation first names a segment.
// One thread at a time (the group lock).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ipc/layout/segment_kind.hpp"
#include "ipc/segment.hpp"
#include "ipc/status.hpp"
#include "ipc/wire.hpp"

namespace railhead::client {

class PeerArenas {
 public:
  // Asks the daemon for a segment of a local rank and maps it: receive read-write, combine read-only.
  using Fetch = std::function<Result<ipc::Segment>(std::uint32_t local, std::uint8_t id)>;

  PeerArenas(std::uint32_t locals, Fetch fetch) : fetch_(std::move(fetch)), mapped_(locals) {}

  // The address of [ref, ref + bytes) of a local rank's arena. What a peer published is not trusted: protocol error
  // when it lies outside its segment, or is to be written and is mapped read-only.
  Result<std::byte*> resolve(std::uint32_t local, ipc::SpanRef ref, std::uint64_t bytes, ipc::Access access);

 private:
  Fetch fetch_;
  std::vector<std::vector<ipc::Segment>> mapped_;  // by local rank, segment id
};

}  // namespace railhead::client
