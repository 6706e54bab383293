#include "client/peer_arenas.hpp"

#include <string>
#include <utility>

namespace railhead::client {

Result<std::byte*> PeerArenas::resolve(std::uint32_t local, ipc::SpanRef ref, std::uint64_t bytes, ipc::Access access) {
  if (ref.segment() >= ipc::kMaxSegments) {
    return fail(Code::protocol, "local rank " + std::to_string(local) + " named arena segment " +
                                    std::to_string(ref.segment()) + ", there are at most " +
                                    std::to_string(ipc::kMaxSegments));
  }
  auto& segments = mapped_[local];
  if (segments.size() <= ref.segment()) segments.resize(ref.segment() + 1U);
  ipc::Segment& segment = segments[ref.segment()];
  if (!segment.valid()) {
    auto fetched = fetch_(local, ref.segment());
    if (!fetched) return fail(fetched.error());
    segment = std::move(*fetched);
  }
  if (access == ipc::Access::read_write && segment.access() == ipc::Access::read_only) {
    return fail(Code::protocol, "local rank " + std::to_string(local) + " named arena segment " +
                                    std::to_string(ref.segment()) +
                                    " as the place of its rows, which its peers may only read");
  }
  if (ref.offset() > segment.bytes() || bytes > segment.bytes() - ref.offset()) {
    return fail(Code::protocol, "local rank " + std::to_string(local) + " named " + std::to_string(bytes) +
                                    " bytes at " + std::to_string(ref.offset()) + " of arena segment " +
                                    std::to_string(ref.segment()) + ", which has " + std::to_string(segment.bytes()));
  }
  return segment.data() + ref.offset();
}

}  // namespace railhead::client
