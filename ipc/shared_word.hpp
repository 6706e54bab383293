// Atomic access to plain integers in shared memory.
// The structs stay plain data, so that layouts can be memset, copied and checked; the views say which order they need.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>

namespace railhead::ipc {

template <class T>
concept SharedWord = std::unsigned_integral<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

// Two processes share these words: an atomic that takes a lock of one process would guard nothing.
static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

template <SharedWord T>
std::atomic_ref<T> shared(T& word) noexcept {
  return std::atomic_ref<T>(word);
}

// Loads also from read-only mappings: a lock-free load never writes, so dropping const is sound.
template <SharedWord T>
T load_acquire(const T& word) noexcept {
  return std::atomic_ref<T>(const_cast<T&>(word)).load(std::memory_order_acquire);
}
template <SharedWord T>
T load_relaxed(const T& word) noexcept {
  return std::atomic_ref<T>(const_cast<T&>(word)).load(std::memory_order_relaxed);
}
template <SharedWord T>
void store_release(T& word, T value) noexcept {
  std::atomic_ref<T>(word).store(value, std::memory_order_release);
}
template <SharedWord T>
void store_relaxed(T& word, T value) noexcept {
  std::atomic_ref<T>(word).store(value, std::memory_order_relaxed);
}

}  // namespace railhead::ipc
