// How a group comes into the proxy's tables and leaves them: registrations, ring numbers, offers, the state of paths.
#pragma once

#include <vector>

#include "daemon/proxy/group.hpp"
#include "daemon/proxy/peers.hpp"

namespace railhead::daemon::rail {

// Registers the group's memory, names its rings and says to each other domain's daemon where to write. On an error
// the caller withdraws what was done.
Result<std::vector<WireOffer>> enrol(Group& group, fabric::Fabric& fabric, Peers& peers);

// Learns where to write from a peer's offer; protocol when it does not fit the group.
Result<void> accept(Path& path, const WireOffer& offer);

// The reverse of enrol; no write of the group may be outstanding.
void withdraw(Group& group, fabric::Fabric& fabric);

// The connection of a path came up, or ended. Both report to the control side.
void path_up(Path& path);
void path_down(Path& path, const Status& reason);

}  // namespace railhead::daemon::rail
