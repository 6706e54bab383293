// The arena of one rank in one group: sealed segments, grown on demand, and the allocator over them.
// Thread safe. Memory is owned by the arena; allocations are handed out by address.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "ipc/layout/align.hpp"
#include "ipc/layout/segment_kind.hpp"
#include "ipc/segment.hpp"
#include "ipc/status.hpp"
#include "ipc/wire.hpp"

namespace railhead::client {

// The most bytes of a segment: a reference has 56 bits for its offset.
inline constexpr std::uint64_t kMostArenaBytes = ipc::SpanRef::kOffsetMask & ~std::uint64_t{ipc::kCacheLine - 1};

// A piece of the arena. Empty when bytes is 0.
struct Block {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  ipc::SpanRef ref;
};

class Arena {
 public:
  // Tells the daemon about a new segment; called before any memory of it is handed out.
  using Announce = std::function<Result<void>(ipc::SegmentKind kind, std::uint8_t id, const ipc::Segment& segment)>;

  explicit Arena(Announce announce) : announce_(std::move(announce)) {}

  // Makes a segment of at least this size now. out_of_memory names needed and free.
  Result<void> reserve(ipc::SegmentKind kind, std::uint64_t bytes);
  // 64-byte aligned. The most recently freed block that fits is used first: its pages are warm in cache and TLB, a cold
  // page costs ten times its copy.
  Result<Block> allocate(ipc::SegmentKind kind, std::uint64_t bytes);
  // Gives back the tail of a block, once at most; the block keeps its first `bytes`.
  void trim(Block& block, std::uint64_t bytes) noexcept;
  // Not an error for an empty block. Two at once where two belong together.
  void release(const Block& block, const Block& other = {}) noexcept;

  // For a caller who gives memory back by its address: what we keep for ourselves cannot be taken from us that way.
  Result<Block> hand_out(ipc::SegmentKind kind, std::uint64_t bytes);
  Result<void> take_back(const void* data);

  // Where memory lies if all of [data, data + bytes) is inside one segment of this arena.
  [[nodiscard]] bool find(const void* data, std::uint64_t bytes, ipc::SpanRef& ref) const;
  // The same for memory that peers may write to: receive segments alone, they map the others read-only.
  [[nodiscard]] bool find_output(const void* data, std::uint64_t bytes, ipc::SpanRef& ref) const;
  // Our own mapping of a reference; null when it is not inside a segment.
  [[nodiscard]] std::byte* resolve(ipc::SpanRef ref, std::uint64_t bytes) const;
  [[nodiscard]] std::uint64_t bytes(ipc::SegmentKind kind) const;

 private:
  struct Piece {
    std::uint8_t segment;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  struct Held {
    ipc::SegmentKind kind{};
    ipc::Segment memory;
  };

  [[nodiscard]] std::span<const Held> segments() const noexcept;
  Result<void> grow(ipc::SegmentKind kind, std::uint64_t bytes);
  bool take(ipc::SegmentKind kind, std::uint64_t bytes, Piece& out);
  void make_room(std::size_t pieces);
  void put(const Block& block) noexcept;
  void put(Piece piece) noexcept;

  std::mutex mutex_;
  Announce announce_;
  // Index = id. One is filled in once and stays, so that looking an address up takes no lock: an operation does it for
  // all its places.
  std::array<Held, ipc::kMaxSegments> segments_;
  std::atomic<std::size_t> segment_count_ = 0;
  std::vector<Piece> free_;     // most recently freed last; neighbours are merged
  std::size_t blocks_out_ = 0;  // allocated and not released
  std::map<const void*, Block> handed_out_;
};

}  // namespace railhead::client
