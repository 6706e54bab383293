#include "client/arena.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "ipc/layout/align.hpp"

namespace railhead::client {
namespace {

constexpr std::uint64_t kLeastSegment = 4U << 20;

Result<void> check_size(std::uint64_t bytes) {
  if (bytes <= kMostArenaBytes) return {};
  return fail(Code::limit_exceeded, "an arena block of " + std::to_string(bytes) +
                                        " bytes was asked for, the most is " + std::to_string(kMostArenaBytes));
}

std::uint64_t rounded(std::uint64_t bytes) {
  return ipc::align_up(std::max<std::uint64_t>(bytes, 1), std::uint64_t{ipc::kCacheLine});
}

const char* kind_name(ipc::SegmentKind kind) {
  return kind == ipc::SegmentKind::receive ? "receive" : "combine";
}

}  // namespace

Result<void> Arena::reserve(ipc::SegmentKind kind, std::uint64_t bytes) {
  if (auto good = check_size(bytes); !good) return good;
  const std::lock_guard lock(mutex_);
  return grow(kind, rounded(bytes));
}

Result<Block> Arena::allocate(ipc::SegmentKind kind, std::uint64_t bytes) {
  if (auto good = check_size(bytes); !good) return fail(good.error());
  const std::lock_guard lock(mutex_);
  const std::uint64_t need = rounded(bytes);
  make_room(3);  // its own two, and the segment that it may need
  Piece piece{};
  if (!take(kind, need, piece)) {
    if (auto grown = grow(kind, need); !grown) return fail(grown.error());
    take(kind, need, piece);
  }
  ++blocks_out_;
  return Block{segments_[piece.segment].memory.data() + piece.offset, need,
               ipc::SpanRef::make(piece.segment, piece.offset)};
}

void Arena::trim(Block& block, std::uint64_t bytes) noexcept {
  const std::uint64_t keep = rounded(bytes);
  if (keep >= block.bytes) return;
  const std::lock_guard lock(mutex_);
  put({block.ref.segment(), block.ref.offset() + keep, block.bytes - keep});
  block.bytes = keep;
}

void Arena::release(const Block& block, const Block& other) noexcept {
  if (block.data == nullptr && other.data == nullptr) return;
  const std::lock_guard lock(mutex_);
  for (const Block* each : {&block, &other}) {
    if (each->data != nullptr) put(*each);
  }
}

Result<Block> Arena::hand_out(ipc::SegmentKind kind, std::uint64_t bytes) {
  auto block = allocate(kind, bytes);
  if (!block) return block;
  try {
    const std::lock_guard lock(mutex_);
    handed_out_.emplace(block->data, *block);
  } catch (const std::bad_alloc&) {
    release(*block);
    throw;
  }
  return block;
}

Result<void> Arena::take_back(const void* data) {
  const std::lock_guard lock(mutex_);
  const auto found = handed_out_.find(data);
  if (found == handed_out_.end()) {
    return fail(Code::invalid_argument,
                "rh_free: the address is not the start of memory that rh_alloc gave for this group");
  }
  put(found->second);
  handed_out_.erase(found);
  return {};
}

std::span<const Arena::Held> Arena::segments() const noexcept {
  // acquire: pairs with grow(), a segment is filled in before it counts.
  return std::span(segments_).first(segment_count_.load(std::memory_order_acquire));
}

bool Arena::find(const void* data, std::uint64_t bytes, ipc::SpanRef& ref) const {
  const auto* const at = static_cast<const std::byte*>(data);
  const std::span<const Held> all = segments();
  for (std::size_t id = 0; id < all.size(); ++id) {
    const ipc::Segment& memory = all[id].memory;
    if (at < memory.data() || at >= memory.data() + memory.bytes()) continue;
    const auto offset = static_cast<std::uint64_t>(at - memory.data());
    if (bytes > memory.bytes() - offset) continue;
    ref = ipc::SpanRef::make(static_cast<std::uint8_t>(id), offset);
    return true;
  }
  return false;
}

bool Arena::find_output(const void* data, std::uint64_t bytes, ipc::SpanRef& ref) const {
  return find(data, bytes, ref) && segments_[ref.segment()].kind == ipc::SegmentKind::receive;
}

std::byte* Arena::resolve(ipc::SpanRef ref, std::uint64_t bytes) const {
  const std::span<const Held> all = segments();
  if (ref.segment() >= all.size()) return nullptr;
  const ipc::Segment& memory = all[ref.segment()].memory;
  if (ref.offset() > memory.bytes() || bytes > memory.bytes() - ref.offset()) return nullptr;
  return memory.data() + ref.offset();
}

std::uint64_t Arena::bytes(ipc::SegmentKind kind) const {
  std::uint64_t sum = 0;
  for (const Held& held : segments()) sum += held.kind == kind ? held.memory.bytes() : 0;
  return sum;
}

Result<void> Arena::grow(ipc::SegmentKind kind, std::uint64_t bytes) {
  const std::size_t count = segments().size();
  if (count == segments_.size()) {
    return fail(Code::limit_exceeded, "the arena has " + std::to_string(count) +
                                          " segments, the most there can be; set receive_bytes and combine_bytes of "
                                          "the group to what it needs");
  }
  // Half as much again as there is, so that a growing load needs few segments and wastes little.
  const std::uint64_t size = std::max({bytes, kLeastSegment, this->bytes(kind) / 2});
  auto made = ipc::Segment::create(std::string("railhead-") + kind_name(kind), size);
  if (!made && size > bytes) made = ipc::Segment::create(std::string("railhead-") + kind_name(kind), bytes);
  if (!made) return fail(made.error());
  if (kind == ipc::SegmentKind::combine) {
    if (auto frozen = made->freeze_writers(); !frozen) return frozen;
  }
  make_room(1);
  const auto id = static_cast<std::uint8_t>(count);
  if (auto told = announce_(kind, id, *made); !told) return told;
  made->drop_fd();
  put({id, 0, made->bytes()});
  segments_[id] = {kind, std::move(*made)};
  segment_count_.store(count + 1, std::memory_order_release);  // release: see segments()
  return {};
}

bool Arena::take(ipc::SegmentKind kind, std::uint64_t bytes, Piece& out) {
  for (auto it = free_.rbegin(); it != free_.rend(); ++it) {
    if (segments_[it->segment].kind != kind || it->bytes < bytes) continue;
    out = {it->segment, it->offset, bytes};
    it->offset += bytes;
    it->bytes -= bytes;
    if (it->bytes == 0) free_.erase(std::next(it).base());
    return true;
  }
  return false;
}

// A block may come back in two pieces (trim), where nothing can fail any more: their room is made before it goes out.
void Arena::make_room(std::size_t pieces) {
  free_.reserve(free_.size() + 2 * blocks_out_ + pieces);
}

void Arena::put(const Block& block) noexcept {
  --blocks_out_;
  put({block.ref.segment(), block.ref.offset(), block.bytes});
}

void Arena::put(Piece piece) noexcept {
  for (auto it = free_.begin(); it != free_.end();) {
    const bool before = it->segment == piece.segment && it->offset + it->bytes == piece.offset;
    const bool after = it->segment == piece.segment && piece.offset + piece.bytes == it->offset;
    if (!before && !after) {
      ++it;
      continue;
    }
    piece.offset = std::min(piece.offset, it->offset);
    piece.bytes += it->bytes;
    it = free_.erase(it);
  }
  free_.push_back(piece);
}

}  // namespace railhead::client
