#include "daemon/proxy/arrivals.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "ipc/clock.hpp"

namespace railhead::daemon::rail {
namespace {

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

void fail_path(const Path& path, const std::string& what) {
  path.group->fail(path.domain, kNoRank,
                   {Code::protocol, "the daemon of host " + short_name(path.peer->host) + " sent " + what});
}

}  // namespace

void Arrivals::immediate(Peer& peer, std::uint32_t word) {
  const auto immediate = ipc::Immediate::decode(word);
  ++peer.counts.rx_immediates;
  if (immediate.ring == 0) {
    credit(peer, immediate.credited);
    return;
  }
  Ring* const ring = immediate.ring < peer.inbound.size() ? peer.inbound[immediate.ring] : nullptr;
  if (ring == nullptr || ring->name.generation != immediate.generation) {
    ++peer.counts.strays;
    return;
  }
  const bool data = ring->role == Role::rx_chunk;
  RxWindow& window = data ? static_cast<RxRing*>(ring)->window : static_cast<HeaderRx*>(ring)->window;
  switch (window.arrive(immediate.sequence)) {
    case RxWindow::Arrival::duplicate: ++peer.counts.duplicates; return;
    case RxWindow::Arrival::outside:
      fail_path(*ring->path, "slot " + number(immediate.sequence) + " (mod 1024) of ring " + number(immediate.ring) +
                                 ", which has received " + number(window.prefix()) + " and cannot take it yet");
      return;
    case RxWindow::Arrival::fresh: break;
  }
  if (data) {
    slot(*static_cast<RxRing*>(ring));
  } else {
    header(*static_cast<HeaderRx*>(ring));
  }
}

void Arrivals::credit(Peer& peer, std::uint16_t number_of_ring) {
  TxRing* const ring = number_of_ring < peer.outbound.size() ? peer.outbound[number_of_ring] : nullptr;
  if (ring == nullptr) {
    ++peer.counts.strays;
    return;
  }
  const auto consumed = peer.credits.read(ring->name);
  // Values are cumulative: an old one that comes late says nothing new, one beyond what was posted is not believed.
  if (!consumed || *consumed <= ring->granted || *consumed > ring->posted) return;
  ring->granted = *consumed;
  ring->rail->words.publish_granted(ring->index, ring->granted);
  ring->path->group->segment().wake(ring->rail->local, ipc::kWakeRail);
}

void Arrivals::slot(RxRing& ring) {
  ring.rail->words.publish_arrived(ring.index, ring.window.prefix());
  ring.path->group->segment().wake(ring.rail->local, ipc::kWakeRail);
}

void Arrivals::header(HeaderRx& ring) {
  if (ring.waiting || publish(ring)) return;
  ring.waiting = true;
  ring.path->group->waiting.push_back(&ring);
}

bool Arrivals::step(Group& group) {
  bool any = false;
  std::erase_if(group.waiting, [&](HeaderRx* ring) {
    const std::uint64_t before = ring->next_op;
    const bool published = publish(*ring);
    if (ring->next_op != before) any = true;
    ring->waiting = !published;
    return published;
  });
  return any;
}

bool Arrivals::publish(HeaderRx& ring) {
  Group& group = *ring.path->group;
  while (ring.next_op <= ring.window.prefix()) {
    // A group that ends needs no headers, and its board may be frozen.
    if (group.stopped) return true;
    if (!group.segment().window_open(ring.next_op)) return false;
    if (auto good = copy_in(ring); !good) {
      fail_path(*ring.path, good.error().message());
      return true;
    }
    header_.called_ns = ipc::steady_ns();
    group.segment().publish_header(ring.rank, ipc::GroupSegment::Origin::another_domain, header_, slice_);
    ++ring.next_op;
  }
  return true;
}

Result<void> Arrivals::copy_in(const HeaderRx& ring) {
  const Group& group = *ring.path->group;
  const ipc::GroupShape& shape = group.shape();
  const std::uint64_t slot = ring.next_op % ipc::header_slots(shape.params().depth);
  const std::byte* const from = group.own.data() + ring.slots_at + slot * shape.header_bytes();
  slice_.resize(shape.slice_words(group.domain()));
  std::memcpy(&header_, from, sizeof(header_));
  std::memcpy(slice_.data(), from + sizeof(header_), slice_.size() * sizeof(std::uint32_t));
  const std::string what = "the header of rank " + number(ring.rank) + " for operation " + number(ring.next_op);
  if (header_.checksum != ipc::header_checksum(header_, slice_.data(), slice_.size())) {
    return fail(Code::protocol, what + " with a wrong checksum");
  }
  if (header_.op != ring.next_op || header_.epoch != shape.epoch()) {
    return fail(Code::protocol, what + " of epoch " + number(shape.epoch()) + ", but it says operation " +
                                    number(header_.op) + " of epoch " + number(header_.epoch));
  }
  return {};
}

}  // namespace railhead::daemon::rail
