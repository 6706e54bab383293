#include "kernels/plan/slot_order.hpp"

#include <algorithm>

namespace railhead::kernels {
namespace {

constexpr int kSlotBits = 5;  // enough for the 32 slots of the largest counting sort
static_assert(kUnusedPlace <= INT32_MAX >> kSlotBits);

// Each key moves to the number of keys below it. Nothing branches on the data, and the compiler makes the loops vector
// code: 8 random slots take a quarter of the time of an insertion sort, which mispredicts.
template <size_t kRoom>
void counting_sort(const uint32_t* places, uint32_t top_k, SlotKey* keys) {
  int32_t value[kRoom];
  for (uint32_t slot = 0; slot < kRoom; ++slot) {
    const uint32_t place = slot < top_k ? places[slot] : kUnusedPlace;
    value[slot] = static_cast<int32_t>(place << kSlotBits | slot);
  }
  int32_t position[kRoom] = {};
  for (size_t j = 0; j < kRoom; ++j) {
    for (size_t i = 0; i < kRoom; ++i) position[i] += value[j] < value[i] ? 1 : 0;
  }
  for (uint32_t slot = 0; slot < kRoom; ++slot) {
    keys[position[slot]] = SlotKey{static_cast<uint32_t>(value[slot])} >> kSlotBits << 16 | slot;
  }
}

void comparison_sort(const uint32_t* places, uint32_t top_k, SlotKey* keys) {
  for (uint32_t slot = 0; slot < top_k; ++slot) keys[slot] = SlotKey{places[slot]} << 16 | slot;
  std::sort(keys, keys + top_k);
}

}  // namespace

size_t order_slots(const uint32_t* places, uint32_t top_k, SlotKey* keys) {
  size_t used = 0;
  for (uint32_t slot = 0; slot < top_k; ++slot) used += places[slot] != kUnusedPlace ? 1 : 0;
  if (top_k <= 8) {
    counting_sort<8>(places, top_k, keys);
  } else if (top_k <= 16) {
    counting_sort<16>(places, top_k, keys);
  } else if (top_k <= 32) {
    counting_sort<32>(places, top_k, keys);
  } else {
    comparison_sort(places, top_k, keys);
  }
  return used;
}

}  // namespace railhead::kernels
