// The point in time at which a wait gives up. Every blocking call takes one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace railhead::ipc {

// 100 years. With the time since boot it still fits the 64 bits of nanoseconds that clocks count in, which what callers
// may ask for does not.
inline constexpr std::uint64_t kForeverMs = std::uint64_t{100} * 365 * 86'400'000;

// A caller's limit in milliseconds that can be added to a clock.
constexpr std::uint64_t bounded_ms(std::uint64_t ms) noexcept {
  return std::min(ms, kForeverMs);
}

// Steady clock (CLOCK_MONOTONIC): changes of the wall clock do not matter.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  constexpr explicit Deadline(Clock::time_point at) noexcept : at_(at) {}

  // Sums beyond the end of the clock are `never`.
  static Deadline after(Clock::duration delay) noexcept {
    const Clock::time_point now = Clock::now();
    if (delay >= Clock::time_point::max() - now) return never();
    return Deadline(now + delay);
  }
  // A caller's number of milliseconds.
  static Deadline after_ms(std::uint64_t ms) noexcept {
    return ms >= kForeverMs ? never() : after(std::chrono::milliseconds(ms));
  }
  static constexpr Deadline never() noexcept { return Deadline(Clock::time_point::max()); }

  [[nodiscard]] constexpr Clock::time_point at() const noexcept { return at_; }
  [[nodiscard]] constexpr bool is_never() const noexcept { return at_ == Clock::time_point::max(); }
  [[nodiscard]] bool expired() const noexcept { return !is_never() && Clock::now() >= at_; }

  // What is left, not below zero, rounded up to whole milliseconds: for poll() and its kind, cut at `most`.
  [[nodiscard]] std::chrono::milliseconds remaining(std::chrono::milliseconds most) const noexcept {
    if (is_never()) return most;
    const Clock::duration left = at_ - Clock::now();
    if (left <= Clock::duration::zero()) return std::chrono::milliseconds::zero();
    return left >= most ? most : std::chrono::ceil<std::chrono::milliseconds>(left);
  }

  friend constexpr bool operator==(Deadline, Deadline) noexcept = default;
  friend constexpr auto operator<=>(Deadline, Deadline) noexcept = default;

 private:
  Clock::time_point at_;
};

}  // namespace railhead::ipc
