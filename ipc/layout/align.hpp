// Alignment arithmetic of shared layouts.
#pragma once

#include <concepts>
#include <cstdint>

namespace railhead::ipc {

inline constexpr std::uint32_t kCacheLine = 64;

// The next multiple of a power of two.
template <std::unsigned_integral T>
constexpr T align_up(T value, T alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace railhead::ipc
