// A client's process, as messages name it.
#pragma once

#include <cstdint>
#include <string>

namespace railhead::daemon {

struct ClientProcess {
  std::int32_t pid = 0;       // the kernel's word, as seen from here; 0 = in a PID namespace that is not visible
  std::uint32_t own_pid = 0;  // its own word, as its namespace counts, for messages alone; 0 = it did not say yet

  [[nodiscard]] std::string name() const {
    if (pid != 0) return "pid " + std::to_string(pid);
    if (own_pid == 0) return "a process of another PID namespace";
    return "pid " + std::to_string(own_pid) + " of another PID namespace";
  }
};

}  // namespace railhead::daemon
