// What both sides of the control protocol need: descriptors as capabilities, statuses and parameters as messages.
#pragma once

#include <kj/async.h>

#include "ipc/fd.hpp"
#include "ipc/layout/shape.hpp"
#include "ipc/schema/control.capnp.h"
#include "ipc/status.hpp"

namespace railhead::ipc {

// A peer that passes no descriptors would otherwise lose them silently.
inline constexpr std::uint32_t kMaxFdsPerMessage = 64;

// A capability that is nothing but a descriptor; `fd` is duplicated.
schema::File::Client share(int fd);
// A descriptor of our own from a capability; empty when it carries none.
kj::Promise<UniqueFd> fetch(schema::File::Client file);

void fill(schema::Error::Builder out, const Status& status);
Result<void> check(schema::Error::Reader error);

void fill(schema::GroupParams::Builder out, const GroupParams& in);
// Not validated: see validate().
GroupParams read(schema::GroupParams::Reader in);

}  // namespace railhead::ipc
