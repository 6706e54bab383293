// What travels between daemons on the rail: operation headers, chunk headers, records, immediates.
// Little endian, plain data, fixed widths. docs/data-plane.md is the prose; this file is the definition.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ipc/layout/align.hpp"
#include "ipc/status.hpp"

namespace railhead::ipc {

inline constexpr std::uint8_t kWireVersion = 1;

enum class OpKind : std::uint8_t { none = 0, dispatch = 1, combine = 2 };
enum class Layout : std::uint8_t { rank = 0, expert = 1 };

// Where bytes lie in the arena of a rank: segment kind, segment id and byte offset in one word.
struct SpanRef {
  std::uint64_t word = 0;

  static constexpr std::uint64_t kOffsetMask = (1ULL << 56) - 1;
  static constexpr SpanRef make(std::uint8_t segment, std::uint64_t offset) {
    return {(static_cast<std::uint64_t>(segment) << 56) | (offset & kOffsetMask)};
  }
  [[nodiscard]] constexpr std::uint8_t segment() const { return static_cast<std::uint8_t>(word >> 56); }
  [[nodiscard]] constexpr std::uint64_t offset() const { return word & kOffsetMask; }
};

// One operation of one rank, as it stands on the board (shared memory) and in a header slot (rail). The slice follows.
// On the board `op` is the tag: stored last with release, read first with acquire; everything else is plain.
struct OpHeader {
  std::uint64_t op;
  std::uint32_t epoch;
  // From here to `side_bytes`: every rank must pass the same (compared by disagreement).
  std::uint8_t kind;     // OpKind
  std::uint8_t layout;   // Layout
  std::uint8_t element;  // kernels::DataType of x (dispatch) or of the rows (combine)
  std::uint8_t wire;     // kernels::DataType of partial sums (combine)
  std::uint8_t flags;    // OpFlags
  std::uint8_t reserved0;
  std::uint16_t align;  // rows of an expert are padded to a multiple of this
  std::uint32_t side_bytes;
  std::uint64_t handle_op;  // combine and cached dispatch: the dispatch whose routing is used; else 0
  std::uint32_t tokens;
  std::uint32_t release_count;  // entries of `releases` that count
  std::uint64_t rows_span;      // SpanRef: dispatch: where rows may be written; combine: where the rows lie
  std::uint64_t meta_span;      // SpanRef: dispatch: where row metadata may be written
  std::uint64_t span_rows;      // dispatch: rows that fit both spans, 0 = none offered (a span word follows)
  std::uint64_t called_ns;      // steady clock of the host that wrote the board row, of the call or of the arrival here
  std::uint64_t releases[4];    // handles that end with this operation
  std::uint32_t checksum;       // CRC-32 of header (with this field 0 and called_ns 0) and slice; rail only
  std::uint32_t reserved1[5];
};
static_assert(sizeof(OpHeader) == 128);

enum OpFlags : std::uint8_t { kFlagWeighted = 1, kFlagCached = 2 };

// A slot of a data ring.
enum class ChunkKind : std::uint8_t { dispatch = 1, combine = 2 };

struct ChunkHeader {
  std::uint32_t magic;  // kChunkMagic
  std::uint8_t version;
  std::uint8_t kind;  // ChunkKind
  std::uint16_t channel;
  std::uint32_t epoch;
  std::uint32_t bytes;  // header and records
  std::uint64_t op;
  std::uint64_t sequence;  // of this slot use in its ring, from 0
  std::uint16_t home;      // the rank whose tokens these are
  std::uint16_t writer;    // the rank that filled the slot
  std::uint32_t records;
  std::uint32_t stride;    // bytes from record to record
  std::uint32_t checksum;  // CRC-32 of the header with this field 0
  std::uint64_t reserved[2];
};
static_assert(sizeof(ChunkHeader) == 64);
inline constexpr std::uint32_t kChunkMagic = 0x4b484352;  // "RCHK"

// One row that a token makes in the destination domain.
struct PlacementRecord {
  std::uint32_t expert_ordinal;  // the source's n-th row for this expert
  std::uint32_t rank_ordinal;    // the source's n-th token for the rank that owns this expert
  std::uint16_t expert;          // domain-local expert index
  std::uint16_t slot;            // first top-k slot that named it
  float weight;                  // summed over the slots that named it
};
static_assert(sizeof(PlacementRecord) == 16);

// A dispatch record: this head, topk placements (the first `placements` count), side data, payload.
struct DispatchRecord {
  std::uint32_t token;
  std::uint16_t placements;
  std::uint16_t reserved0;
  std::uint64_t reserved1;
};
static_assert(sizeof(DispatchRecord) == 16);

struct DispatchRecordLayout {
  std::uint32_t placements;  // byte offsets inside the record
  std::uint32_t side;
  std::uint32_t payload;
  std::uint32_t stride;

  constexpr DispatchRecordLayout(std::uint32_t topk, std::uint32_t side_bytes, std::uint32_t payload_bytes)
      : placements(sizeof(DispatchRecord)),
        side(placements + topk * static_cast<std::uint32_t>(sizeof(PlacementRecord))),
        payload(side + align_up(side_bytes, 16U)),
        stride(align_up(payload + payload_bytes, kCacheLine)) {}
};

// A combine record: this head, then the partial sum of one token in the wire type.
struct CombineRecord {
  std::uint32_t token;
  std::uint32_t reserved[3];
};
static_assert(sizeof(CombineRecord) == 16);

// 32 bits of remote completion data: ring 16 | sequence 10 | generation 6. Ring 0 is control: the low 16 bits name the
// ring whose credit word was just written. Ring numbers are chosen by the receiving daemon, per connection.
struct Immediate {
  std::uint16_t ring = 0;
  std::uint16_t sequence = 0;   // low 10 bits of the slot sequence
  std::uint8_t generation = 0;  // 6 bits: changes when a ring number is used again
  std::uint16_t credited = 0;   // ring == 0: the ring whose credit word was written

  static constexpr std::uint32_t kSequenceBits = 10;
  static constexpr std::uint32_t kGenerationBits = 6;
  [[nodiscard]] constexpr std::uint32_t encode() const {
    if (ring == 0) return credited;
    return (static_cast<std::uint32_t>(ring) << 16) |
           ((static_cast<std::uint32_t>(sequence) & ((1U << kSequenceBits) - 1)) << kGenerationBits) |
           (generation & ((1U << kGenerationBits) - 1));
  }
  static constexpr Immediate decode(std::uint32_t word) {
    Immediate out;
    out.ring = static_cast<std::uint16_t>(word >> 16);
    if (out.ring == 0) {
      out.credited = static_cast<std::uint16_t>(word);
      return out;
    }
    out.sequence = static_cast<std::uint16_t>((word >> kGenerationBits) & ((1U << kSequenceBits) - 1));
    out.generation = static_cast<std::uint8_t>(word & ((1U << kGenerationBits) - 1));
    return out;
  }
};

// Slots that the peer has consumed, cumulative, in the low 58 bits; the ring number's generation in the top 6, so that
// a late credit of a closed group is not taken for one of the ring that has its number now. Written by the peer's NIC
// while we may read: the complement shows a torn pair, which is skipped (the write that tore it brings its own
// immediate).
struct CreditWord {
  std::uint64_t consumed;
  std::uint64_t complement;

  [[nodiscard]] constexpr bool whole() const { return consumed == ~complement; }
  static constexpr CreditWord make(std::uint64_t consumed) { return {consumed, ~consumed}; }
};
static_assert(sizeof(CreditWord) == 16);

// Fills in `checksum`.
void seal(ChunkHeader& header);
// A header from shared or network memory, already copied: magic, version, checksum, bytes within slot_bytes, records
// and stride consistent.
Result<void> check(const ChunkHeader& header, std::uint32_t slot_bytes);

// Checksum of an operation header with its slice (slice_words u32 words directly behind the header).
std::uint32_t header_checksum(const OpHeader& header, const std::uint32_t* slice, std::size_t slice_words);

// The first field in which two ranks' calls under one number differ, or an empty string: "layout: rank and expert".
std::string disagreement(const OpHeader& a, const OpHeader& b);

}  // namespace railhead::ipc
