// On which processors a proxy runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ipc/status.hpp"

namespace railhead::daemon::rail {

// "0-3,8" in the kernel's notation. invalid_argument names the part that is wrong.
Result<std::vector<int>> parse_cpu_list(std::string_view text);

// Binds the calling thread to the list, or, where that is empty, near the network interface or RDMA device of this
// name. Returns what was done, for reports; a list that cannot be had is an error, an unknown device is not.
Result<std::string> bind_thread(std::string_view cpu_list, const std::string& device);

}  // namespace railhead::daemon::rail
