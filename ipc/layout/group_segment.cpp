#include "ipc/layout/group_segment.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "ipc/layout/align.hpp"

namespace railhead::ipc {
namespace {

using Word = std::atomic_ref<std::uint64_t>;

// Segment head: poison word, then its text.
constexpr std::uint64_t kPoisonWord = 0;
constexpr std::uint64_t kPoisonTextAt = kCacheLine;

// Counts one arrival under `op`; true for the arrival that makes `of`.
bool arrive(std::uint64_t* at, std::uint64_t op, std::uint32_t of) {
  Word word(*at);
  // relaxed: only the value matters; the CAS below orders.
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint32_t next = (is_tagged(seen, op) ? tagged_count(seen) : 0) + 1;
    // acq_rel: the last arrival must see what the earlier ones published before it wakes the waiter.
    if (word.compare_exchange_weak(seen, tagged(op, next), std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return next == of;
    }
  }
}

}  // namespace

const char* phase_name(WaitPhase phase) noexcept {
  switch (phase) {
    case WaitPhase::none: return "none";
    case WaitPhase::window: return "window";
    case WaitPhase::headers: return "headers";
    case WaitPhase::span: return "span";
    case WaitPhase::run: return "run";
    case WaitPhase::credits: return "credits";
    case WaitPhase::rows: return "rows";
    case WaitPhase::pulls: return "pulls";
    case WaitPhase::partials: return "partials";
  }
  return "unknown";
}

GroupSegmentLayout::GroupSegmentLayout(const GroupShape& shape, std::uint32_t domain)
    : ranks_(shape.ranks()),
      locals_(static_cast<std::uint32_t>(shape.ranks_of(domain).size())),
      depth_(shape.params().depth),
      row_bytes_(shape.header_bytes()) {
  std::uint64_t at = kPoisonTextAt + kPoisonText;
  const auto place = [&at](std::uint64_t bytes) {
    at = align_up(at, std::uint64_t{128});
    const std::uint64_t here = at;
    at += bytes;
    return here;
  };
  live_ = place(std::uint64_t{locals_} * sizeof(LiveWords));
  left_ = place(std::uint64_t{ranks_} * 8);
  board_ = place(std::uint64_t{depth_ + 1} * ranks_ * row_bytes_);
  board_arrive_ = place(std::uint64_t{depth_ + 1} * kCacheLine);
  span_ = place(std::uint64_t{depth_} * locals_ * sizeof(SpanWords));
  counts_ = place(std::uint64_t{depth_} * locals_ * locals_ * 8);
  arrive_ = place(std::uint64_t{depth_} * locals_ * 8);
  bytes_ = align_up(at, std::uint64_t{4096});
}

std::byte* GroupSegment::row(std::uint32_t rank, std::uint64_t op) const {
  return base_ + layout_.board_ + ((op % (layout_.depth_ + 1)) * layout_.ranks_ + rank) * layout_.row_bytes_;
}

void GroupSegment::publish_header(std::uint32_t rank, Origin origin, const OpHeader& header,
                                  std::span<const std::uint32_t> slice) const {
  std::byte* const at = row(rank, header.op);
  constexpr std::size_t kTag = sizeof(header.op);
  std::memcpy(at + kTag, reinterpret_cast<const std::byte*>(&header) + kTag, sizeof(header) - kTag);
  if (!slice.empty()) std::memcpy(at + sizeof(OpHeader), slice.data(), slice.size_bytes());
  // release: a reader that sees the tag sees header and slice.
  Word(*reinterpret_cast<std::uint64_t*>(at)).store(header.op, std::memory_order_release);
  auto* const arrived = word(layout_.board_arrive_ + (header.op % (layout_.depth_ + 1)) * kCacheLine);
  bool wakes = arrive(arrived, header.op, layout_.ranks_);
  if (origin == Origin::this_domain && header.kind == static_cast<std::uint8_t>(OpKind::combine)) {
    wakes |= arrive(arrived + 1, header.op, layout_.locals_);
  }
  if (wakes) wake_all(kWakeHeaders);
}

GroupSegment::Row GroupSegment::header(std::uint32_t rank, std::uint64_t op) const {
  std::byte* const at = row(rank, op);
  // acquire: pairs with the release of the tag in publish_header.
  if (Word(*reinterpret_cast<std::uint64_t*>(at)).load(std::memory_order_acquire) != op) return {};
  return {reinterpret_cast<const OpHeader*>(at), reinterpret_cast<const std::uint32_t*>(at + sizeof(OpHeader))};
}

std::uint32_t GroupSegment::headers_present(std::uint64_t op) const {
  std::uint32_t present = 0;
  for (std::uint32_t r = 0; r < layout_.ranks_; ++r) present += header(r, op).header != nullptr ? 1U : 0U;
  return present;
}

std::uint64_t GroupSegment::completed(std::uint32_t local) const {
  // acquire: who sees an operation complete may reuse what its owner had read.
  return Word(live(local).completed).load(std::memory_order_acquire) & ~kFrozen;
}

bool GroupSegment::window_open(std::uint64_t op) const {
  if (op <= layout_.depth_) return true;
  for (std::uint32_t l = 0; l < layout_.locals_; ++l) {
    if (completed(l) < op - layout_.depth_) return false;
  }
  return true;
}

bool GroupSegment::complete(std::uint32_t local, std::uint64_t op) const {
  std::uint64_t expected = op - 1;
  // release: everything this rank read of the operation was read before others may overwrite it.
  if (!Word(live(local).completed)
           .compare_exchange_strong(expected, op, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    return false;
  }
  for (std::uint32_t l = 0; l < layout_.locals_; ++l) {
    if (l != local) wake(l, kWakeWindow);
  }
  return true;
}

std::uint64_t GroupSegment::freeze(std::uint32_t local) const {
  // acq_rel: the value read is final, no completion can follow it.
  return Word(live(local).completed).fetch_or(kFrozen, std::memory_order_acq_rel) & ~kFrozen;
}

void GroupSegment::publish_span(std::uint32_t local, std::uint64_t op, SpanRef rows, SpanRef meta,
                                std::uint64_t capacity) const {
  auto* const at = reinterpret_cast<SpanWords*>(base_ + layout_.span_ +
                                                ((op % layout_.depth_) * layout_.locals_ + local) * sizeof(SpanWords));
  at->rows_span = rows.word;
  at->meta_span = meta.word;
  at->rows = capacity;
  // release: a writer that sees the tag sees the place.
  Word(at->op).store(op, std::memory_order_release);
  for (std::uint32_t l = 0; l < layout_.locals_; ++l) {
    if (l != local) wake(l, kWakeSpan);
  }
}

bool GroupSegment::span(std::uint32_t local, std::uint64_t op, SpanWords& out) const {
  auto* const at = reinterpret_cast<SpanWords*>(base_ + layout_.span_ +
                                                ((op % layout_.depth_) * layout_.locals_ + local) * sizeof(SpanWords));
  // acquire: pairs with publish_span.
  if (Word(at->op).load(std::memory_order_acquire) != op) return false;
  out = {op, at->rows_span, at->meta_span, at->rows};
  return true;
}

std::uint64_t* GroupSegment::counter(std::uint32_t owner, std::uint32_t writer, std::uint64_t op) const {
  const std::uint64_t index = ((op % layout_.depth_) * layout_.locals_ + owner) * layout_.locals_ + writer;
  return word(layout_.counts_ + index * 8);
}

void GroupSegment::finish(std::uint32_t owner, std::uint32_t writer, std::uint64_t op, std::uint32_t count) const {
  // release: an owner that sees the tag sees every row (dispatch), or may overwrite what was pulled (combine).
  Word(*counter(owner, writer, op)).store(tagged(op, count), std::memory_order_release);
  if (arrive(word(layout_.arrive_ + ((op % layout_.depth_) * layout_.locals_ + owner) * 8), op, layout_.locals_)) {
    wake(owner, kWakeArrived);
  }
}

GroupSegment::Finished GroupSegment::finished(std::uint32_t owner, std::uint64_t op) const {
  Finished out;
  for (std::uint32_t w = 0; w < layout_.locals_; ++w) {
    // acquire: pairs with finish.
    const std::uint64_t seen = Word(*counter(owner, w, op)).load(std::memory_order_acquire);
    if (!is_tagged(seen, op)) continue;
    ++out.writers;
    out.count += tagged_count(seen);
  }
  return out;
}

bool GroupSegment::has_finished(std::uint32_t owner, std::uint32_t writer, std::uint64_t op) const {
  // acquire: pairs with finish.
  return is_tagged(Word(*counter(owner, writer, op)).load(std::memory_order_acquire), op);
}

std::uint64_t GroupSegment::left(std::uint32_t rank) const {
  // acquire: what the rank did before it left is visible.
  return Word(*word(layout_.left_ + rank * 8ULL)).load(std::memory_order_acquire);
}

void GroupSegment::set_left(std::uint32_t rank, std::uint64_t last_op, const std::string& text) const {
  if (!text.empty()) write_end_text(text);
  // release: pairs with left(); the text is there before the word.
  Word(*word(layout_.left_ + rank * 8ULL)).store(last_op + 1, std::memory_order_release);
  wake_all(kWakeAnyEvent);
}

void GroupSegment::write_end_text(const std::string& text) const {
  char* const out = reinterpret_cast<char*>(base_ + kPoisonTextAt);
  const std::size_t length = std::min(text.size(), kPoisonText - 1);
  std::memcpy(out, text.data(), length);
  out[length] = 0;
}

void GroupSegment::set_poison(Poison poison, const std::string& text) const {
  write_end_text(text);
  // release: the text is there before the word.
  Word(*word(kPoisonWord)).store(poison.encode(), std::memory_order_release);
  for (std::uint32_t l = 0; l < layout_.locals_; ++l) ipc::poison(live(l).wake);
}

bool GroupSegment::poisoned() const {
  // acquire: pairs with set_poison, so that the text can be read.
  return Word(*word(kPoisonWord)).load(std::memory_order_acquire) != 0;
}

Poison GroupSegment::poison() const {
  return Poison::decode(Word(*word(kPoisonWord)).load(std::memory_order_acquire));  // acquire: as in poisoned()
}

std::string GroupSegment::end_text() const {
  const char* const text = reinterpret_cast<const char*>(base_ + kPoisonTextAt);
  return {text, ::strnlen(text, kPoisonText)};
}

void GroupSegment::wake(std::uint32_t local, std::uint32_t events) const {
  notify(live(local).wake, events);
}

void GroupSegment::wake_all(std::uint32_t events) const {
  for (std::uint32_t l = 0; l < layout_.locals_; ++l) wake(l, events);
}

}  // namespace railhead::ipc
