// The operator's calls to a daemon. Every function returns by the deadline in `options`.
#pragma once

#include <cstdint>
#include <string>

#include "tools/epctl/options.hpp"

namespace railhead::epctl {

// What to end: a session, or one rank of a group.
struct Eviction {
  std::uint32_t session = 0;  // > 0: this session
  std::string group;          // else this rank of the group whose name begins so
  std::int32_t rank = -1;
  std::string reason;
};

// A snapshot of the daemon's: status, why, sessions, groups, arenas, rings, peers. unavailable: no daemon there;
// timeout: there is one, but it does not answer; permission: not yours to administer; version_mismatch.
Result<Json> snapshot(const Options& options, const std::string& what);
Result<void> evict(const Options& options, const Eviction& eviction);

}  // namespace railhead::epctl
