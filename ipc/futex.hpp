// Thin wrappers of futex(2) on words that several processes share (never FUTEX_PRIVATE).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ipc/deadline.hpp"

namespace railhead::ipc {

enum class FutexResult : std::uint8_t {
  woken,        // by a wake; may be meant for somebody else, so look again
  changed,      // the word did not hold the expected value
  timeout,      // the deadline passed
  interrupted,  // a signal handler ran
  unsupported,  // the kernel does not have this call
  failed,       // bad address: the mapping is gone
};

inline constexpr std::uint32_t kFutexAllBits = 0xFFFFFFFFU;

// Sleeps while `word` holds `expected`, until a wake whose bits meet `bits` (not 0). The word may be mapped read-only.
FutexResult futex_wait(const std::uint32_t& word, std::uint32_t expected, Deadline deadline,
                       std::uint32_t bits = kFutexAllBits) noexcept;

// Wakes up to `count` sleepers whose bits meet `bits`; returns how many woke.
std::uint32_t futex_wake(const std::uint32_t& word, std::uint32_t count, std::uint32_t bits = kFutexAllBits) noexcept;

inline constexpr std::uint32_t kFutexWakeAll = 0x7FFFFFFFU;

struct FutexWaiter {
  const std::uint32_t* word;
  std::uint32_t expected;
};

inline constexpr std::size_t kFutexWaitvMax = 128;

// Sleeps on up to kFutexWaitvMax words at once (Linux 5.16).
FutexResult futex_waitv(std::span<const FutexWaiter> waiters, Deadline deadline) noexcept;

// Whether this kernel, and the system call filter we run under, let us call futex_waitv. Asked once.
bool has_futex_waitv() noexcept;

}  // namespace railhead::ipc
