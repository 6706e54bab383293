#include "daemon/fabric/ofi_error.hpp"

#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>

namespace railhead::fabric {

std::string ofi_error_text(int error) {
  const int number = std::abs(error);
  const char* name = ::strerrorname_np(number);
  return std::string(fi_strerror(number)) + " (" + (name ? name : "FI_E " + std::to_string(number)) + ")";
}

Status ofi_status(Code code, std::string_view what, int error) {
  return {code, std::string(what) + ": " + ofi_error_text(error)};
}

Result<void> ofi_check(std::string_view what, long result) {
  if (result >= 0) return {};
  return fail(ofi_status(Code::system, what, static_cast<int>(result)));
}

}  // namespace railhead::fabric
