// Checks of what callers pass, before anything happens. Every message names field, value and limit.
#pragma once

#include <cstddef>

#include "client/combine_op.hpp"
#include "client/dispatch_op.hpp"
#include "client/group_context.hpp"
#include "client/handle.hpp"
#include "ipc/layout/shape.hpp"
#include "ipc/status.hpp"
#include "kernels/plan/plan.hpp"
#include "railhead/railhead.h"

namespace railhead::client {

// A size beyond this was never set: what follows the struct is not read.
inline constexpr std::size_t kMostStructBytes = 4096;

// A caller's struct of its own size, as ours: fields beyond its size are zero. invalid_argument when size is 0 or
// larger than what this library knows and not zero there.
template <class T>
Result<T> read_struct(const T* in, const char* name);

Result<ipc::GroupParams> group_params(const rh_group_config& config);

struct DispatchInput {
  kernels::Routing routing;  // unused for a cached dispatch
  DispatchRequest request;
  ipc::Layout layout = ipc::Layout::rank;
  std::uint32_t align = 1;
};
// For a place of more rows than sizes are computed for.
Status too_many_rows(std::uint64_t out_rows);
Result<DispatchInput> dispatch_input(const GroupContext& group, const rh_dispatch_args& args, const Handle* cached);

Result<CombineRequest> combine_input(const GroupContext& group, const rh_combine_args& args, const Handle& handle);

}  // namespace railhead::client
