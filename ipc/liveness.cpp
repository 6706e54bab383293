#include "ipc/liveness.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <string>
#include <utility>

namespace railhead::ipc {
namespace {

static_assert(sizeof(pthread_mutex_t) <= sizeof(LivenessCell) && alignof(pthread_mutex_t) <= kCacheLine);
static_assert(offsetof(pthread_mutex_t, __data.__lock) == offsetof(LivenessCell, word));

pthread_mutex_t* mutex_in(LivenessCell& cell) noexcept {
  return reinterpret_cast<pthread_mutex_t*>(&cell);
}

// A robust mutex that answers an unlock by anybody else with EPERM.
int make_mutex(LivenessCell& cell) noexcept {
  pthread_mutexattr_t attributes;
  if (const int error = pthread_mutexattr_init(&attributes)) return error;
  int error = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  if (error == 0) error = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  if (error == 0) error = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  if (error == 0) error = pthread_mutex_init(mutex_in(cell), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return error;
}

}  // namespace

Life classify_life(std::uint32_t value) noexcept {
  if ((value & FUTEX_OWNER_DIED) != 0) return Life::died;
  if (value == 0) return Life::released;
  return (value & FUTEX_WAITERS) != 0 && (value & FUTEX_TID_MASK) != 0 ? Life::alive : Life::tampered;
}

Result<LivenessOwner> LivenessOwner::create(LivenessCell& cell) {
  const std::uint32_t before = load_acquire(cell.word);
  if (before != 0) {
    return fail(Code::invalid_usage,
                "liveness word holds " + std::to_string(before) + ", not 0: it has or had an owner; use a fresh one");
  }
  if (const int error = make_mutex(cell)) return fail(system_status("liveness word: mutex", error));
  if (const int error = pthread_mutex_lock(mutex_in(cell))) return fail(system_status("liveness word: lock", error));
  const pid_t thread = ::gettid();
  // acq_rel: the bit joins what the lock stored; before this the kernel would mark a death without waking anybody.
  const std::uint32_t held = shared(cell.word).fetch_or(FUTEX_WAITERS, std::memory_order_acq_rel);
  if ((held & FUTEX_TID_MASK) != static_cast<std::uint32_t>(thread)) {
    pthread_mutex_unlock(mutex_in(cell));
    return fail(Code::internal, "liveness word holds " + std::to_string(held) + " after the lock, expected thread " +
                                    std::to_string(thread) + ": this C library lays its mutexes out differently");
  }
  return LivenessOwner(cell, thread);
}

LivenessOwner::LivenessOwner(LivenessOwner&& other) noexcept
    : cell_(std::exchange(other.cell_, nullptr)), thread_(other.thread_) {}

LivenessOwner& LivenessOwner::operator=(LivenessOwner&& other) noexcept {
  std::swap(cell_, other.cell_);
  std::swap(thread_, other.thread_);
  return *this;
}

LivenessOwner::~LivenessOwner() {
  static_cast<void>(release());
}

Result<void> LivenessOwner::release() {
  if (cell_ == nullptr) return {};
  if (::gettid() != thread_) {
    return fail(Code::invalid_usage, "liveness word of thread " + std::to_string(thread_) +
                                         " cannot be released by thread " + std::to_string(::gettid()));
  }
  // The unlock stores 0, takes the entry from the robust list and, because FUTEX_WAITERS is set, wakes the watcher.
  const int error = pthread_mutex_unlock(mutex_in(*cell_));
  cell_ = nullptr;
  if (error != 0) return fail(system_status("liveness word: unlock", error));
  return {};
}

}  // namespace railhead::ipc
