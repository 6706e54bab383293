// Row copies of the data plane. Any thread; pointers need no alignment; source and destination must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace railhead::kernels {

// non_temporal goes around the caches: for rows that the writer will not read again. It does not order the stores; call
// fence() before telling anybody that the rows are there.
enum class StoreMode : uint8_t { temporal, non_temporal };

// The mode for an operation that moves this many bytes of rows in the whole domain: rows that do not stay in a cache
// until they are read go around it (docs/benchmarks.md, "Stores").
StoreMode store_mode_for(uint64_t bytes);

void copy_row(void* dst, const void* src, size_t bytes, StoreMode mode);

// Reads the row once and stores it to `count` destinations.
void copy_row_multi(void* const* dsts, size_t count, const void* src, size_t bytes, StoreMode mode);

// Zeroes adjacent rows: `bytes` in all.
void zero_rows(void* dst, size_t bytes, StoreMode mode);

// All earlier stores of this thread, non-temporal ones too, become visible before any later store.
void fence();

}  // namespace railhead::kernels
