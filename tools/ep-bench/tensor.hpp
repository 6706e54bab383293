// Memory of rows as tensor libraries give it: aligned to cache lines. std::vector alone aligns to 16 bytes, where every
// 64-byte load crosses a line and no store can go around the cache.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace railhead::bench {

template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>& /*other*/) {}  // NOLINT(google-explicit-constructor): allocators convert

  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* memory, std::size_t /*count*/) { ::operator delete(memory, kLine); }
  bool operator==(const LineAllocator&) const = default;
};

template <class T>
using Tensor = std::vector<T, LineAllocator<T>>;

}  // namespace railhead::bench
