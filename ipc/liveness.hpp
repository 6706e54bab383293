// Death notice: a word in shared memory that the kernel marks when the thread that owns it is gone, however it went.
//
// The word is the lock word of a robust, process-shared pthread mutex that the owner holds as long as it lives. The
// mutex, and not an entry of our own in the thread's robust list, because glibc keeps that list (doubly linked, one
// offset for all entries) and every other robust mutex of the thread must stay in it unharmed. FUTEX_WAITERS is set at
// once, so that the kernel always wakes; nobody ever waits for the mutex itself.
//
// exec() and the exit of that one thread count as death too: create the owner on a thread that lives as long as the
// session. A child made by fork() does not hold the word.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "ipc/layout/align.hpp"
#include "ipc/shared_word.hpp"
#include "ipc/status.hpp"

namespace railhead::ipc {

// One cache line. All zero: no owner yet, or a clean end. The owner's side needs it mapped read-write, the rest for its
// mutex; watchers read `word` only, and a read-only mapping does for them.
struct LivenessCell {
  alignas(
      kCacheLine) std::uint32_t word;  // kernel and owner write: owner's thread id | FUTEX_WAITERS | FUTEX_OWNER_DIED
  std::uint32_t owner_private[15];
};
static_assert(sizeof(LivenessCell) == kCacheLine);

enum class Life : std::uint8_t {
  alive,     // owned, and a death will be announced
  released,  // no owner: not yet, or ended cleanly
  died,      // the owner's thread ended without release
  tampered,  // none of these: somebody else wrote the word
};

// Never compares the thread id with anything: it is the one of the owner's PID namespace.
Life classify_life(std::uint32_t value) noexcept;

// For those who only look, such as a client at its daemon's page.
inline Life life_of(const LivenessCell& cell) noexcept {
  // acquire: what the owner wrote before a clean end is visible.
  return classify_life(load_acquire(cell.word));
}
inline bool is_alive(const LivenessCell& cell) noexcept {
  return life_of(cell) == Life::alive;
}

// Owns a cell on behalf of the thread that creates it. Everything here, destruction included, belongs to that thread,
// and the cell must stay mapped until then: the thread's robust list runs through it.
class LivenessOwner {
 public:
  // The cell must be zero (invalid_usage otherwise: it has an owner, or had one that died).
  static Result<LivenessOwner> create(LivenessCell& cell);

  LivenessOwner(LivenessOwner&& other) noexcept;
  LivenessOwner& operator=(LivenessOwner&& other) noexcept;
  LivenessOwner(const LivenessOwner&) = delete;
  LivenessOwner& operator=(const LivenessOwner&) = delete;
  ~LivenessOwner();

  // The clean end: the word becomes 0 and the watcher wakes. On another thread or in a forked child nothing happens
  // and invalid_usage says so. Idempotent.
  Result<void> release();

 private:
  LivenessOwner(LivenessCell& cell, pid_t thread) noexcept : cell_(&cell), thread_(thread) {}

  LivenessCell* cell_;
  pid_t thread_;
};

}  // namespace railhead::ipc
