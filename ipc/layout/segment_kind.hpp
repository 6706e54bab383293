// Kinds and identifiers of bulk segments.
#pragma once

#include <cstdint>

namespace railhead::ipc {

// receive: peers map it read-write, the daemon never touches it. combine: peers map it read-only.
// rail: mapped by owner and daemon, registered with the NIC.
enum class SegmentKind : std::uint8_t { receive = 0, combine = 1, rail = 2 };

// A rank has at most this many receive and combine segments in one group; ids are unique over both kinds.
inline constexpr std::uint8_t kMaxSegments = 64;

}  // namespace railhead::ipc
