// libfabric's error numbers as sentences that carry the error's name.
#pragma once

#include <string>
#include <string_view>

#include "ipc/status.hpp"

namespace railhead::fabric {

// "Connection refused (ECONNREFUSED)". Takes either sign.
std::string ofi_error_text(int error);

// "fi_listen: Address already in use (EADDRINUSE)".
Status ofi_status(Code code, std::string_view what, int error);

// A call that returns a negative error number.
Result<void> ofi_check(std::string_view what, long result);

}  // namespace railhead::fabric
