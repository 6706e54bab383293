// The implementations behind reduce_rows; only reduce.cpp and the tests name them. They expect the default
// floating-point mode.
#pragma once

#include <cstddef>

#include "kernels/host/reduce.hpp"

namespace railhead::kernels {

namespace portable {
void reduce_rows(void* out, DataType out_type, const ReduceGroup* groups, size_t group_count, size_t length);
}

namespace avx512 {
void reduce_rows(void* out, DataType out_type, const ReduceGroup* groups, size_t group_count, size_t length,
                 bool stream);
}

}  // namespace railhead::kernels
