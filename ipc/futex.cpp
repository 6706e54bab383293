#include "ipc/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace railhead::ipc {
namespace {

#ifndef SYS_futex_waitv
constexpr long kSysFutexWaitv = 449;  // the same on every architecture
#else
constexpr long kSysFutexWaitv = SYS_futex_waitv;
#endif

// The kernel's layout, so that headers older than 5.16 do.
struct WaitvEntry {
  std::uint64_t value;
  std::uint64_t address;
  std::uint32_t flags;
  std::uint32_t reserved;
};
constexpr std::uint32_t kWaitvSize32 = 2;

// Absolute CLOCK_MONOTONIC time, which is what steady_clock counts.
timespec to_timespec(Deadline deadline) noexcept {
  using namespace std::chrono;
  const auto since = std::max(deadline.at().time_since_epoch(), Deadline::Clock::duration::zero());
  const auto whole = duration_cast<seconds>(since);
  return {static_cast<time_t>(whole.count()), static_cast<long>(duration_cast<nanoseconds>(since - whole).count())};
}

FutexResult from_error(int error) noexcept {
  switch (error) {
    case EAGAIN: return FutexResult::changed;
    case ETIMEDOUT: return FutexResult::timeout;
    case EINTR: return FutexResult::interrupted;
    // Container filters answer EPERM for calls that they do not know.
    case ENOSYS:
    case EPERM: return FutexResult::unsupported;
    default: return FutexResult::failed;
  }
}

long call_waitv(const WaitvEntry* entries, unsigned count, const timespec* timeout) noexcept {
  return ::syscall(kSysFutexWaitv, entries, count, 0U, timeout, CLOCK_MONOTONIC);
}

}  // namespace

FutexResult futex_wait(const std::uint32_t& word, std::uint32_t expected, Deadline deadline,
                       std::uint32_t bits) noexcept {
  const timespec until = to_timespec(deadline);
  // The bitset form, because its timeout is absolute.
  const long rc =
      ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected, deadline.is_never() ? nullptr : &until, nullptr, bits);
  return rc == 0 ? FutexResult::woken : from_error(errno);
}

std::uint32_t futex_wake(const std::uint32_t& word, std::uint32_t count, std::uint32_t bits) noexcept {
  const long rc =
      ::syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, std::min(count, kFutexWakeAll), nullptr, nullptr, bits);
  return rc > 0 ? static_cast<std::uint32_t>(rc) : 0;
}

FutexResult futex_waitv(std::span<const FutexWaiter> waiters, Deadline deadline) noexcept {
  if (waiters.empty() || waiters.size() > kFutexWaitvMax) return FutexResult::failed;
  std::array<WaitvEntry, kFutexWaitvMax> entries;
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    entries[i] = {waiters[i].expected, reinterpret_cast<std::uintptr_t>(waiters[i].word), kWaitvSize32, 0};
  }
  const timespec until = to_timespec(deadline);
  const long rc =
      call_waitv(entries.data(), static_cast<unsigned>(waiters.size()), deadline.is_never() ? nullptr : &until);
  return rc >= 0 ? FutexResult::woken : from_error(errno);
}

bool has_futex_waitv() noexcept {
  // No waiters is EINVAL where the call exists.
  static const bool has = call_waitv(nullptr, 0, nullptr) < 0 && errno == EINVAL;
  return has;
}

}  // namespace railhead::ipc
