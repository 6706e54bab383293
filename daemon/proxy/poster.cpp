#include "daemon/proxy/poster.hpp"

#include <cstring>

namespace railhead::daemon::rail {
namespace {

Ring& ring_of(std::uint64_t context) {
  return *reinterpret_cast<Ring*>(context);  // NOLINT(performance-no-int-to-ptr): what post() made of a Ring*
}

// The ring's count of slots that the fabric took; credits are no slots.
std::uint64_t* posted_of(Ring& ring) {
  if (ring.role == Role::tx_chunk) return &static_cast<TxRing&>(ring).posted;
  if (ring.role == Role::tx_header) return &static_cast<HeaderTx&>(ring).posted;
  return nullptr;
}

// Books the end of a write, good or bad.
void settle(Ring& ring) {
  --ring.path->outstanding;
  if (ring.role == Role::tx_header) ++static_cast<HeaderTx&>(ring).reported;
  if (ring.role == Role::rx_chunk) static_cast<RxRing&>(ring).crediting = false;
}

std::uint32_t immediate_of(RingName ring, std::uint64_t sequence) {
  return ipc::Immediate{
      .ring = ring.number, .sequence = static_cast<std::uint16_t>(sequence & 0x3ff), .generation = ring.generation}
      .encode();
}

}  // namespace

void Poster::chunk(TxRing& ring, std::uint64_t sequence, std::uint32_t bytes) {
  const ipc::RailSegmentLayout& layout = ring.rail->layout;
  send(ring, {.local = ring.rail->region,
              .local_offset = layout.tx_slot(ring.index, sequence),
              .bytes = bytes,
              .remote = {ring.slots.key, 0},
              .remote_offset = ring.slots.base + layout.tx_slot(0, sequence),  // a ring's slots lie alike on both sides
              .immediate = immediate_of(ring.name, sequence)});
}

void Poster::header(HeaderTx& ring, std::uint64_t operation, std::uint32_t bytes) {
  const ipc::GroupShape& shape = ring.path->group->shape();
  const std::uint64_t slot = operation % ipc::header_slots(shape.params().depth);
  send(ring, {.local = ring.rail->region,
              .local_offset = ring.rail->layout.header_slot(ring.index, operation),
              .bytes = bytes,
              .remote = {ring.slots.key, 0},
              .remote_offset = ring.slots.base + slot * shape.header_bytes(),
              .immediate = immediate_of(ring.name, operation - 1)});
}

void Poster::credit(RxRing& ring) {
  if (ring.crediting || ring.credited == ring.consumed || ring.path->state != Path::State::connected) return;
  ring.crediting = true;
  ring.credited = ring.consumed;
  const NicMemory& own = ring.path->group->own;
  const ipc::CreditWord word = make_credit(ring.name.generation, ring.consumed);
  std::memcpy(own.data() + ring.credit_at, &word, sizeof(word));
  send(ring, {.local = own.region(),
              .local_offset = ring.credit_at,
              .bytes = sizeof(word),
              .remote = ring.path->credits,
              .remote_offset = ring.name.number * sizeof(word),
              .immediate = ipc::Immediate{.ring = 0, .credited = ring.name.number}.encode()});
}

void Poster::send(Ring& ring, fabric::Write write) {
  if (ring.path->state != Path::State::connected) return;
  Peer& peer = *ring.path->peer;
  write.peer = peer.connection;
  write.context = reinterpret_cast<std::uint64_t>(&ring);
  // Behind what waits already, so that a ring keeps its order.
  if (!peer.queue.empty() || !post(write)) peer.queue.push_back(write);
}

bool Poster::post(const fabric::Write& write) {
  Ring& ring = ring_of(write.context);
  const auto state = fabric_.post_write(write);
  if (!state) {
    // A lost peer: its end is on the way, with the reason, and fails every group that uses it.
    if (state.error().code() != Code::peer_lost) ring.path->group->fail(ring.path->domain, kNoRank, state.error());
    return true;
  }
  if (*state == fabric::PostState::again) return false;
  ++ring.path->outstanding;
  if (std::uint64_t* const posted = posted_of(ring)) ++*posted;
  PeerReport& counts = ring.path->peer->counts;
  ++counts.tx_writes;
  counts.tx_bytes += write.bytes;
  return true;
}

bool Poster::retry(Peer& peer) {
  bool any = false;
  while (!peer.queue.empty() && post(peer.queue.front())) {
    peer.queue.pop_front();
    any = true;
  }
  return any;
}

bool Poster::has_queued(const Group& group) {
  return std::any_of(group.paths.begin(), group.paths.end(), [](const Path& path) {
    return path.peer != nullptr &&
           std::any_of(path.peer->queue.begin(), path.peer->queue.end(),
                       [&path](const fabric::Write& write) { return ring_of(write.context).path == &path; });
  });
}

void Poster::drop_queued(Group& group) {
  for (const Path& path : group.paths) {
    if (path.peer == nullptr) continue;
    std::erase_if(path.peer->queue,
                  [&path](const fabric::Write& write) { return ring_of(write.context).path == &path; });
  }
}

void Poster::done(std::uint64_t context) {
  Ring& ring = ring_of(context);
  settle(ring);
  if (ring.role == Role::rx_chunk && !ring.path->group->closing) credit(static_cast<RxRing&>(ring));
}

void Poster::failed(std::uint64_t context, const Status& status) {
  Ring& ring = ring_of(context);
  settle(ring);
  if (ring.path->state == Path::State::connected) ring.path->group->fail(ring.path->domain, kNoRank, status);
}

}  // namespace railhead::daemon::rail
