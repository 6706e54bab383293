#include "daemon/proxy/closing.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/proxy/poster.hpp"

namespace railhead::daemon::rail {
namespace {

constexpr std::chrono::seconds kQuiesceTime{5};

std::uint64_t arrived(const Ring& ring) {
  return ring.role == Role::rx_chunk ? static_cast<const RxRing&>(ring).window.prefix()
                                     : static_cast<const HeaderRx&>(ring).window.prefix();
}

// A ring that the peer does not name got nothing.
std::uint64_t expected(const Posted& posted, std::uint16_t number) {
  const auto found = std::find_if(posted.begin(), posted.end(), [&](const auto& item) { return item.first == number; });
  return found == posted.end() ? 0 : found->second;
}

}  // namespace

bool settled(const Path& path) {
  // Not connected here means that the group never began: its peers post nothing before this daemon has said that all
  // its paths are up.
  if (path.state != Path::State::connected) return true;
  if (!path.peer_posted) return false;
  return std::all_of(path.inbound.begin(), path.inbound.end(), [&](const Ring* ring) {
    return arrived(*ring) >= expected(*path.peer_posted, ring->name.number);
  });
}

void Closing::begin(Group& group, CloseMode mode) {
  if (group.closing) return;
  group.stopped = true;
  group.closing = true;
  group.close_deadline = mode == CloseMode::drain ? std::chrono::steady_clock::time_point::max()
                                                  : std::chrono::steady_clock::now() + kQuiesceTime;
  Poster::drop_queued(group);
}

bool Closing::step(Group& group) {
  const bool late = std::chrono::steady_clock::now() > group.close_deadline;
  bool over = true;
  for (Path& path : group.paths) {
    if (path.peer == nullptr) continue;
    if (path.outstanding == 0 && !path.quiesced) report_posted(path);
    if (path.outstanding == 0 && settled(path)) continue;
    over = false;
    if (late) give_up(path);
  }
  if (!over) return false;
  withdraw(group, fabric_);
  group.own = NicMemory();
  group.events().closed(group.key());
  return true;
}

void Closing::report_posted(Path& path) {
  path.quiesced = true;
  Posted posted;
  for (const Ring* const ring : path.outbound) {
    const std::uint64_t count = ring->role == Role::tx_chunk ? static_cast<const TxRing*>(ring)->posted
                                                             : static_cast<const HeaderTx*>(ring)->posted;
    if (count > 0) posted.emplace_back(ring->name.number, count);
  }
  path.group->events().quiesced(path.group->key(), path.domain, std::move(posted));
}

// A write to withdrawn memory ends the connection on tcp, for every group and without a name; so it is ended here.
void Closing::give_up(Path& path) {
  peers_.close(*path.peer, {Code::timeout, "a group was closed and after " + std::to_string(kQuiesceTime.count()) +
                                               " s its last writes had not settled; its memory must go"});
}

}  // namespace railhead::daemon::rail
