// What an open file holds. A stream of the standard library keeps the system's reason to itself, and takes a folder for
// an empty file.
#pragma once

#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "ipc/status.hpp"

namespace railhead::daemon {

// `what` begins the sentence of a failure: "cannot read the key file /k".
inline Result<std::string> read_text(int fd, std::string_view what) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_status(what, errno));
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace railhead::daemon
