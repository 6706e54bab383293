#include "daemon/proxy/enrolment.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace railhead::daemon::rail {
namespace {

Result<void> register_memory(Group& group, fabric::Fabric& fabric) {
  if (group.shape().domains() == 1) return {};
  const std::uint64_t ring_bytes =
      std::uint64_t{ipc::header_slots(group.shape().params().depth)} * group.shape().header_bytes();
  std::uint64_t at = 0;
  for (HeaderRx& ring : group.headers) {
    ring.slots_at = at;
    at += ring_bytes;
  }
  for (Rail& rail : group.rails) {
    for (RxRing& ring : rail.rx) {
      ring.credit_at = at;
      at += sizeof(ipc::CreditWord);
    }
  }
  auto own = NicMemory::create(fabric, at);
  if (!own) return fail(own.error());
  group.own = std::move(*own);
  for (Rail& rail : group.rails) {
    const RailMemory& memory = group.source().ranks[rail.local];
    const auto region = fabric.register_memory(memory.rail, memory.rail_bytes);
    if (!region) return fail(region.error());
    rail.region = *region;
    rail.registered = true;
  }
  return {};
}

Result<void> name_inbound(Path& path) {
  for (Ring* const ring : path.inbound) {
    const auto name = path.peer->numbers.take();
    if (!name) return fail(name.error());
    ring->name = *name;
    path.peer->inbound[name->number] = ring;
  }
  return {};
}

Result<WireOffer::Ring> describe(const Ring& ring, const Group& group, const fabric::Fabric& fabric) {
  WireOffer::Ring out;
  out.number = ring.name.number;
  out.generation = ring.name.generation;
  if (ring.role == Role::rx_header) {
    const auto& header = static_cast<const HeaderRx&>(ring);
    out.kind = 1;
    out.rank = header.rank;
    out.slots = {group.own.remote().key, group.own.remote().base + header.slots_at};
    return out;
  }
  const auto& data = static_cast<const RxRing&>(ring);
  const auto key = fabric.remote_key(data.rail->region);
  if (!key) return fail(key.error());
  out.rank = data.rail->rank;
  out.index = data.index;
  out.slots = {key->key, key->base + data.rail->layout.rx_slot(data.index, 0)};
  return out;
}

Result<WireOffer> make_offer(Path& path, fabric::Fabric& fabric, Peers& peers) {
  WireOffer offer;
  offer.fabric_address = fabric.address();
  offer.credits = path.peer->credits.remote();
  for (const Ring* const ring : path.inbound) {
    auto described = describe(*ring, *path.group, fabric);
    if (!described) return fail(described.error());
    offer.rings.push_back(*described);
  }
  auto token = peers.announce(*path.peer);
  if (!token) return fail(token.error());
  offer.token = *token;
  return offer;
}

// Out of the tables by which immediates find rings.
void unbind(Path& path) {
  for (Ring* const ring : path.inbound) {
    Ring*& entry = path.peer->inbound[ring->name.number];
    if (entry == ring) entry = nullptr;
  }
  for (Ring* const ring : path.outbound) {
    TxRing*& entry = path.peer->outbound[ring->name.number];
    if (entry == ring) entry = nullptr;
  }
}

// What names a ring in an offer: kind, receiving (data) or source (header) rank, rx index.
using RingId = std::array<std::uint32_t, 3>;

RingId id_at_receiver(const Ring& ring, const ipc::GroupShape& shape) {
  if (ring.role == Role::tx_header) return {1, static_cast<const HeaderTx&>(ring).rail->rank, 0};
  const auto& tx = static_cast<const TxRing&>(ring);
  const auto target = tx.rail->rings.target_of_tx(shape, tx.index);
  return {0, target.rank, target.rx};
}

Result<void> take_name(Path& path, Ring& ring, const WireOffer::Ring& offered) {
  auto& outbound = path.peer->outbound;
  const RingName name{offered.number, offered.generation};
  if (name.number == 0 || name.number >= outbound.size()) {
    return fail(Code::protocol, "host " + short_name(path.peer->host) + " offers ring number " +
                                    std::to_string(name.number) + ", the limit here is " +
                                    std::to_string(outbound.size() - 1) +
                                    ": give all daemons the same number of rings per peer");
  }
  // Another generation: the earlier group is being closed here and already is there.
  if (outbound[name.number] != nullptr && outbound[name.number]->name == name) {
    return fail(Code::protocol, "host " + short_name(path.peer->host) + " offers ring number " +
                                    std::to_string(name.number) + " twice in one generation");
  }
  ring.name = name;
  if (ring.role == Role::tx_header) {
    static_cast<HeaderTx&>(ring).slots = offered.slots;
  } else {
    static_cast<TxRing&>(ring).slots = offered.slots;
    outbound[name.number] = static_cast<TxRing*>(&ring);
  }
  return {};
}

}  // namespace

Result<std::vector<WireOffer>> enrol(Group& group, fabric::Fabric& fabric, Peers& peers) {
  for (Path& path : group.paths) {
    if (path.domain == group.domain()) continue;
    const auto peer = peers.enter(group.source().daemon_of_domain[path.domain]);
    if (!peer) return fail(peer.error());
    path.peer = *peer;
    path.peer->paths.push_back(&path);
  }
  if (auto registered = register_memory(group, fabric); !registered) return fail(registered.error());
  std::vector<WireOffer> offers(group.paths.size());
  for (Path& path : group.paths) {
    if (path.peer == nullptr) continue;
    if (auto named = name_inbound(path); !named) return fail(named.error());
    auto offer = make_offer(path, fabric, peers);
    if (!offer) return fail(offer.error());
    offers[path.domain] = std::move(*offer);
  }
  return offers;
}

Result<void> accept(Path& path, const WireOffer& offer) {
  std::map<RingId, const WireOffer::Ring*> offered;
  for (const WireOffer::Ring& ring : offer.rings) offered[{ring.kind, ring.rank, ring.index}] = &ring;
  if (offered.size() != path.outbound.size() || offer.rings.size() != path.outbound.size()) {
    return fail(Code::protocol, "host " + short_name(path.peer->host) + " offers " +
                                    std::to_string(offer.rings.size()) + " rings, " +
                                    std::to_string(path.outbound.size()) + " are needed");
  }
  for (Ring* const ring : path.outbound) {
    const RingId id = id_at_receiver(*ring, path.group->shape());
    const auto found = offered.find(id);
    if (found == offered.end()) {
      return fail(Code::protocol, "host " + short_name(path.peer->host) + " offers no ring of kind " +
                                      std::to_string(id[0]) + " for rank " + std::to_string(id[1]) + ", index " +
                                      std::to_string(id[2]));
    }
    if (auto taken = take_name(path, *ring, *found->second); !taken) return fail(taken.error());
  }
  path.credits = offer.credits;
  return {};
}

void withdraw(Group& group, fabric::Fabric& fabric) {
  for (Path& path : group.paths) {
    if (path.peer == nullptr) continue;
    unbind(path);
    for (const Ring* const ring : path.inbound) {
      if (ring->name.number != 0) path.peer->numbers.give_back(ring->name);
    }
    std::erase(path.peer->paths, &path);
  }
  for (Rail& rail : group.rails) {
    // Cannot be refused: nothing is outstanding.
    if (rail.registered) static_cast<void>(fabric.deregister(rail.region));
  }
}

void path_up(Path& path) {
  path.state = Path::State::connected;
  path.group->events().connected(path.group->key(), path.domain, {});
}

void path_down(Path& path, const Status& reason) {
  const Path::State was = std::exchange(path.state, path.state == Path::State::opened ? path.state : Path::State::dead);
  if (was == Path::State::opened || was == Path::State::dead) return;
  unbind(path);
  if (was == Path::State::connected) {
    path.group->fail(path.domain, kNoRank, reason);
  } else if (!path.group->closing) {
    path.group->events().connected(path.group->key(), path.domain, fail(reason));
  }
}

}  // namespace railhead::daemon::rail
