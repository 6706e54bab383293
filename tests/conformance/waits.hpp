// What `epctl why` says of a group: the one place that shows that a rank waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "tests/support/processes.hpp"
#include "tools/epctl/admin_call.hpp"

namespace railhead::test {

// A rank of the daemon at this socket waits in this operation and has seen the calls of `got` ranks.
inline bool waits_for_calls(const std::string& socket, std::uint64_t op, std::uint32_t got) {
  epctl::Options options;
  options.socket = socket;
  const auto why = epctl::snapshot(options, "why");
  if (!why) return false;
  return std::any_of((*why)["waits"].begin(), (*why)["waits"].end(), [&](const Json& wait) {
    return wait.value("op", std::uint64_t{0}) == op && wait.value("phase", "") == "headers" &&
           wait.value("got", 0U) == got;
  });
}

}  // namespace railhead::test
