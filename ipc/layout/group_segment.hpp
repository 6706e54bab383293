// The group segment: the words that the ranks of one domain and their daemon share for one epoch of one group.
// Made by the daemon, mapped read-write by the domain's ranks; the daemon reads it as untrusted input.
// Every table is a fixed array of words of at most 8 bytes that carry their operation number, so a process killed at
// any instruction leaves it readable. Row by row with writers, readers and memory orders: docs/shared-words.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ipc/layout/shape.hpp"
#include "ipc/wait.hpp"
#include "ipc/wire.hpp"

namespace railhead::ipc {

// Words of one local rank. One cache line for what others poll, one for what only diagnostics read.
struct alignas(128) LiveWords {
  std::uint64_t completed;  // writer: the rank (CAS) and the daemon (sets kFrozen); every operation <= it is complete
  std::uint64_t quiet;      // writer: the rank: 1 = saw the poison, will not touch peers' memory again
  WakeWord wake;            // see ipc/wait.hpp; poison lives here too
  std::uint64_t planned;    // writer: the rank: highest operation published
  std::uint64_t reserved[4];
  // Diagnostics (`epctl why`): what the rank waits for. Writer: the rank, relaxed; a torn set is only a stale line.
  std::uint64_t waiting_op;
  std::uint64_t waiting_for;  // WaitPhase 8 | peer rank 16 | got 20 | of 20
  std::uint64_t waiting_since_ns;
  std::uint64_t rows;  // totals since the epoch began: rows received, bytes sent over the rail, operations
  std::uint64_t rail_bytes;
  std::uint64_t operations;
  std::uint64_t reserved2[2];
};
static_assert(sizeof(LiveWords) == 128);

inline constexpr std::uint64_t kFrozen = 1ULL << 63;

enum class WaitPhase : std::uint8_t { none, window, headers, span, run, credits, rows, pulls, partials };
const char* phase_name(WaitPhase phase) noexcept;

// Events of a rank's wake word (WakeWord::sleep_mask).
enum WakeEvent : std::uint32_t {
  kWakeHeaders = 1,  // all headers of an operation are on the board, or all of the domain's own of a combine
  kWakeWindow = 2,   // a rank's completed word advanced
  kWakeSpan = 4,     // a span was published
  kWakeArrived = 8,  // all writers or pullers of an operation are done with this rank
  kWakeRail = 16,    // a chunk arrived or a credit came back
  kWakeLeft = 32,    // a rank left the group
  kWakeAnyEvent = 0x7fffffff,
};

// Why the epoch ended; one word, written by the daemon.
struct Poison {
  Code code = Code::ok;
  std::uint16_t rank = kNoRank;
  static constexpr std::uint16_t kNoRank = 0xffff;

  [[nodiscard]] std::uint64_t encode() const { return (1ULL << 63) | (static_cast<std::uint64_t>(code) << 16) | rank; }
  static Poison decode(std::uint64_t word) {
    return {static_cast<Code>((word >> 16) & 0xff), static_cast<std::uint16_t>(word)};
  }
};
inline constexpr std::size_t kPoisonText =
    512;  // bytes, zero terminated; written before the poison word, or before that of the first rank that left

// A dispatch's place for the rows of one receiver; valid for the operation whose number it carries.
struct SpanWords {
  std::uint64_t op;  // tag, stored last
  std::uint64_t rows_span;
  std::uint64_t meta_span;
  std::uint64_t rows;
};

// A word {operation number 32 | count 32}. Absolute, one writer, never reset: the tag tells what it counts.
constexpr std::uint64_t tagged(std::uint64_t op, std::uint32_t count) {
  return (op << 32) | count;
}
constexpr bool is_tagged(std::uint64_t word, std::uint64_t op) {
  return (word >> 32) == (op & 0xffffffffU);
}
constexpr std::uint32_t tagged_count(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}

// Offsets inside the segment.
class GroupSegmentLayout {
 public:
  GroupSegmentLayout() = default;
  GroupSegmentLayout(const GroupShape& shape, std::uint32_t domain);

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  friend class GroupSegment;
  std::uint32_t ranks_ = 0;
  std::uint32_t locals_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t row_bytes_ = 0;
  std::uint64_t live_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t board_ = 0;
  std::uint64_t board_arrive_ = 0;
  std::uint64_t span_ = 0;
  std::uint64_t counts_ = 0;
  std::uint64_t arrive_ = 0;
  std::uint64_t bytes_ = 0;
};

// Access to a mapped group segment. Both sides use it; what each may write is said per verb. No ownership of the
// memory.
class GroupSegment {
 public:
  GroupSegment() = default;
  GroupSegment(void* base, const GroupShape& shape, std::uint32_t domain)
      : base_(static_cast<std::byte*>(base)), layout_(shape, domain) {}

  [[nodiscard]] bool valid() const noexcept { return base_ != nullptr; }
  [[nodiscard]] std::uint32_t locals() const noexcept { return layout_.locals_; }
  [[nodiscard]] LiveWords& live(std::uint32_t local) const {
    return *reinterpret_cast<LiveWords*>(base_ + layout_.live_ + local * sizeof(LiveWords));
  }

  // --- board ---
  // Writer: the rank itself, or the daemon for a rank of another domain. Only when every local rank completed op -
  // depth. Copies header and slice, stores the tag last, counts the arrival; the last of all ranks wakes the domain. So
  // does the last of the domain itself for a combine, which can begin then.
  enum class Origin : std::uint8_t { this_domain, another_domain };
  void publish_header(std::uint32_t rank, Origin origin, const OpHeader& header,
                      std::span<const std::uint32_t> slice) const;
  // The header of `op` of this rank if it is there; the reference stays good until this reader completes `op`.
  struct Row {
    const OpHeader* header = nullptr;
    const std::uint32_t* slice = nullptr;
  };
  [[nodiscard]] Row header(std::uint32_t rank, std::uint64_t op) const;
  // Ranks whose header of `op` is on the board.
  [[nodiscard]] std::uint32_t headers_present(std::uint64_t op) const;

  // --- window ---
  [[nodiscard]] std::uint64_t completed(std::uint32_t local) const;  // without kFrozen
  [[nodiscard]] bool window_open(std::uint64_t op) const;            // every local rank completed op - depth
  // Writer: the rank. False if the word is frozen: the operation does not count as complete.
  [[nodiscard]] bool complete(std::uint32_t local, std::uint64_t op) const;
  // Writer: the daemon, once per abort. Returns the last operation complete at this rank.
  std::uint64_t freeze(std::uint32_t local) const;

  // --- spans, dispatch only. Writer: the receiver. ---
  void publish_span(std::uint32_t local, std::uint64_t op, SpanRef rows, SpanRef meta, std::uint64_t capacity) const;
  [[nodiscard]] bool span(std::uint32_t local, std::uint64_t op, SpanWords& out) const;

  // --- completion counters: rows written to (dispatch) or rows pulled from (combine) `owner` by `writer` ---
  // Writer: `writer`, once per operation and owner, after its last store or load there (non-temporal stores fenced).
  // The last of the domain's writers wakes the owner.
  void finish(std::uint32_t owner, std::uint32_t writer, std::uint64_t op, std::uint32_t count) const;
  // Writers that finished with `owner`, and the sum of their counts.
  struct Finished {
    std::uint32_t writers = 0;
    std::uint64_t count = 0;
  };
  [[nodiscard]] Finished finished(std::uint32_t owner, std::uint64_t op) const;
  [[nodiscard]] bool has_finished(std::uint32_t owner, std::uint32_t writer, std::uint64_t op) const;

  // --- membership: last operation + 1 after which a rank left; 0 = present. Writer: the daemon. ---
  [[nodiscard]] std::uint64_t left(std::uint32_t rank) const;
  // The first time with the sentence that end_text() gives from then on.
  void set_left(std::uint32_t rank, std::uint64_t last_op, const std::string& text = {}) const;

  // --- poison. Writer: the daemon, whatever stands there: ranks can reach the word. Wakes every local rank. ---
  void set_poison(Poison poison, const std::string& text) const;
  [[nodiscard]] bool poisoned() const;
  [[nodiscard]] Poison poison() const;
  // Of the poison, before it of the first rank that left. Between the two it may be a mixture of both.
  [[nodiscard]] std::string end_text() const;

  void wake(std::uint32_t local, std::uint32_t events) const;
  void wake_all(std::uint32_t events) const;

 private:
  void write_end_text(const std::string& text) const;
  [[nodiscard]] std::uint64_t* word(std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t*>(base_ + offset);
  }
  [[nodiscard]] std::byte* row(std::uint32_t rank, std::uint64_t op) const;
  [[nodiscard]] std::uint64_t* counter(std::uint32_t owner, std::uint32_t writer, std::uint64_t op) const;

  std::byte* base_ = nullptr;
  GroupSegmentLayout layout_;
};

}  // namespace railhead::ipc
