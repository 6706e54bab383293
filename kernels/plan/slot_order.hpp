// The order of the slots of one token.
#pragma once

#include <cstddef>
#include <cstdint>

namespace railhead::kernels {

// A slot and the place (ExpertMap) of its expert. Places stay below kUnusedPlace, which marks unused slots.
using SlotKey = uint64_t;
constexpr uint32_t kUnusedPlace = (1u << 26) - 1;

constexpr uint32_t place_of(SlotKey key) {
  return static_cast<uint32_t>(key >> 16);
}
constexpr uint16_t slot_of(SlotKey key) {
  return static_cast<uint16_t>(key);
}

// Room that order_slots needs in `keys`.
constexpr size_t slot_key_room(uint32_t top_k) {
  return top_k < 32 ? 32 : top_k;
}

// Writes the used ones of `top_k` slots to keys, ascending by (place, slot), and returns how many they are. What lies
// behind them in keys is unspecified.
size_t order_slots(const uint32_t* places, uint32_t top_k, SlotKey* keys);

}  // namespace railhead::kernels
