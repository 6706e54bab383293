// Wake words: how one process sleeps until another has done something, without a system call while both are awake.
//
//   waiter: publish the events it waits for, full fence, look again, sleep on `value`
//   waker:  store the data (release), full fence, look whether somebody sleeps for this event; only then change and
//   wake
//
// One of the two fences comes first, so either the waiter's second look sees the data or the waker sees the sleeper.
// Any number of threads of any number of processes may wait on one word and wake it. Mask bits are set by waiters and
// cleared by the waker that wakes them all, so a bit left behind by a waiter that went away costs one idle wake-up.
// What a hostile peer writes here can delay a waiter by one tick, or end its group; never more.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>

#include "ipc/deadline.hpp"
#include "ipc/shared_word.hpp"

namespace railhead::ipc {

// All zero: nobody sleeps, not poisoned.
struct WakeWord {
  std::uint32_t value;       // bit 31: poison; the rest changes with every wake
  std::uint32_t sleep_mask;  // events for which somebody sleeps
};
static_assert(sizeof(WakeWord) == 8);

inline constexpr std::uint32_t kPoisonBit = 1U << 31;

// How a wait passes its time: `spins` looks with a pause between, at most `yields` looks with the core offered to
// others (none after one that somebody took), then sleep of at most `tick`.
struct WaitPolicy {
  std::uint32_t spins;
  std::uint32_t yields;
  std::chrono::milliseconds tick;

  // No spinning where more threads want to run than there are cores: the one waited for needs the core.
  static WaitPolicy for_load(std::uint32_t runnable, std::uint32_t cores) noexcept;
};

inline constexpr std::chrono::milliseconds kMaxTick{100};

enum class WaitResult : std::uint8_t {
  ready,     // the predicate holds
  timeout,   // the deadline passed
  tick,      // nothing yet; look at what cannot wake us (the daemon's liveness), then wait again
  poisoned,  // the word is poisoned: nothing will come
};

// To be called after the data was stored with release. `events` is a set of bits that waiters know, not 0.
// Costs a fence and a load while nobody sleeps.
void notify(WakeWord& word, std::uint32_t events) noexcept;

// For good: every wait on the word, now and later, ends with `poisoned`.
void poison(WakeWord& word) noexcept;

inline bool is_poisoned(const WakeWord& word) noexcept {
  // acquire: what the poisoner wrote before (the reason) is visible.
  return (load_acquire(word.value) & kPoisonBit) != 0;
}

// The sleeping part of a wait, apart from the predicate's type. For wait_until() only.
class SleepStep {
 public:
  SleepStep(WakeWord& word, std::uint32_t events, Deadline deadline, const WaitPolicy& policy) noexcept;

  // Spins or yields once and says which; `sleep` when it is time to sleep.
  enum class Linger : std::uint8_t { spun, yielded, sleep };
  Linger linger() noexcept;
  // Announces the sleeper. The predicate must be looked at again afterwards.
  void announce() noexcept;
  // Sleeps until a wake or the tick. Only after announce().
  void sleep() noexcept;
  // `ready` means: go on waiting. The tick counts from the first call, so that a wait that only spins reads no clock.
  [[nodiscard]] WaitResult clock() noexcept;

 private:
  WakeWord& word_;
  std::uint32_t events_;
  std::uint32_t seen_ = 0;
  std::uint32_t spins_;
  std::uint32_t yields_;
  std::chrono::milliseconds tick_;
  Deadline deadline_;
  Deadline tick_end_ = Deadline::never();
};

// Waits until `predicate()` is true; it must read shared memory with acquire and is called many times. Poison is seen
// before readiness. A passed deadline still gets one look at the predicate.
template <std::predicate Predicate>
WaitResult wait_until(WakeWord& word, std::uint32_t events, Deadline deadline, const WaitPolicy& policy,
                      Predicate&& predicate) {
  SleepStep step(word, events, deadline, policy);
  for (;;) {
    // Also after a sleep and before the next announcement: a bit announced in vain costs the next waker a system call.
    if (is_poisoned(word)) return WaitResult::poisoned;
    if (predicate()) return WaitResult::ready;
    const SleepStep::Linger linger = step.linger();
    if (linger == SleepStep::Linger::spun) continue;
    if (const WaitResult over = step.clock(); over != WaitResult::ready) return over;
    if (linger == SleepStep::Linger::yielded) continue;
    step.announce();
    if (is_poisoned(word)) return WaitResult::poisoned;
    if (predicate()) return WaitResult::ready;
    step.sleep();
  }
}

}  // namespace railhead::ipc
