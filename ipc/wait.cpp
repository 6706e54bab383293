#include "ipc/wait.hpp"

#include <sched.h>

#include <algorithm>

#include "ipc/futex.hpp"

namespace railhead::ipc {
namespace {

// About 10 us: an answer that is on its way comes within them. Longer is left to the yields, which cost the same on an
// idle core and give a busy one away: with 1000, ranks that spun beside their daemon's proxy made a round of two nodes
// on two cores take 26 ms instead of 17 ms.
constexpr std::uint32_t kSpins = 50;
// A yield among waiters takes 0.5 us to 3 us. With 4 ranks on 2 cores and 128 tokens each, 200 make a round 7 % shorter
// than 20 (2.42 ms against 2.60 ms, median of 12 runs): fewer ranks pay for a sleep that ends at once.
constexpr std::uint32_t kYields = 200;
// One that took longer gave the core to somebody who computes, and the next would again: a time slice each. A sleeper
// is put back as soon as it is woken.
constexpr std::chrono::microseconds kLongYield{100};

void pause_core() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Poison stays; the counter wraps below it.
std::uint32_t next_value(std::uint32_t value) noexcept {
  return (value & kPoisonBit) | ((value + 1) & ~kPoisonBit);
}

}  // namespace

WaitPolicy WaitPolicy::for_load(std::uint32_t runnable, std::uint32_t cores) noexcept {
  return {runnable > cores ? 0U : kSpins, kYields, kMaxTick};
}

void notify(WakeWord& word, std::uint32_t events) noexcept {
  // seq_cst fence: the caller's data before our look at the mask; pairs with the one in announce().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // relaxed: the fence orders it.
  if ((load_relaxed(word.sleep_mask) & events) == 0) return;
  // relaxed: a sleeper that announced itself after this line read `value` before the change below, or sees the change;
  // either way it does not stay asleep, and if it saw the change its bit was set after the clearing (next line's
  // release).
  shared(word.sleep_mask).fetch_and(~events, std::memory_order_relaxed);
  std::uint32_t value = load_relaxed(word.value);
  // release: whoever reads the new value sees the cleared mask, so that its own bit comes after. Relaxed on failure:
  // retry.
  while (!shared(word.value)
              .compare_exchange_weak(value, next_value(value), std::memory_order_release, std::memory_order_relaxed)) {
  }
  futex_wake(word.value, kFutexWakeAll, events);
}

void poison(WakeWord& word) noexcept {
  // release: the reason was written before.
  shared(word.value).fetch_or(kPoisonBit, std::memory_order_release);
  futex_wake(word.value, kFutexWakeAll);
}

SleepStep::SleepStep(WakeWord& word, std::uint32_t events, Deadline deadline, const WaitPolicy& policy) noexcept
    : word_(word),
      events_(events),
      spins_(policy.spins),
      yields_(policy.yields),
      tick_(std::min(policy.tick, kMaxTick)),
      deadline_(deadline) {}

SleepStep::Linger SleepStep::linger() noexcept {
  if (spins_ > 0) {
    --spins_;
    pause_core();
    return Linger::spun;
  }
  if (yields_ > 0) {
    --yields_;
    const Deadline::Clock::time_point start = Deadline::Clock::now();
    ::sched_yield();
    if (Deadline::Clock::now() - start > kLongYield) yields_ = 0;
    return Linger::yielded;
  }
  return Linger::sleep;
}

void SleepStep::announce() noexcept {
  // acquire: pairs with notify()'s release, see there. Read before the mask is set: a wake in between must be noticed.
  seen_ = load_acquire(word_.value);
  // relaxed: the fence orders it.
  shared(word_.sleep_mask).fetch_or(events_, std::memory_order_relaxed);
  // seq_cst fence: the mask before the next look at the predicate; pairs with the one in notify().
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void SleepStep::sleep() noexcept {
  futex_wait(word_.value, seen_, std::min(deadline_, tick_end_), events_);
}

WaitResult SleepStep::clock() noexcept {
  const Deadline::Clock::time_point now = Deadline::Clock::now();
  if (now >= deadline_.at()) return WaitResult::timeout;
  if (tick_end_.is_never()) tick_end_ = Deadline(now + tick_);
  return now >= tick_end_.at() ? WaitResult::tick : WaitResult::ready;
}

}  // namespace railhead::ipc
