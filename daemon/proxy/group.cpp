#include "daemon/proxy/group.hpp"

namespace railhead::daemon::rail {
namespace {

Result<void> check(const GroupRails& rails) {
  if (!rails.shape) return fail(Code::internal, "open_group without a shape");
  const ipc::GroupShape& shape = *rails.shape;
  if (rails.domain >= shape.domains() || rails.daemon_of_domain.size() != shape.domains()) {
    return fail(Code::internal, "open_group for domain " + std::to_string(rails.domain) + " with " +
                                    std::to_string(rails.daemon_of_domain.size()) + " daemons, the shape has " +
                                    std::to_string(shape.domains()) + " domains");
  }
  const auto& locals = shape.ranks_of(rails.domain);
  if (!rails.segment.valid() || rails.ranks.size() != locals.size()) {
    return fail(Code::internal, "open_group with memory of " + std::to_string(rails.ranks.size()) +
                                    " ranks, the domain has " + std::to_string(locals.size()));
  }
  for (std::size_t local = 0; local < locals.size(); ++local) {
    const RailMemory& memory = rails.ranks[local];
    const std::uint64_t need = ipc::RailSegmentLayout(shape, locals[local]).bytes();
    if (memory.rank != locals[local] || memory.words == nullptr ||
        (need > 0 && (memory.rail == nullptr || memory.rail_bytes < need))) {
      return fail(Code::internal, "open_group with " + std::to_string(memory.rail_bytes) + " rail bytes of rank " +
                                      std::to_string(memory.rank) + ", rank " + std::to_string(locals[local]) +
                                      " needs " + std::to_string(need));
    }
  }
  return {};
}

// The domain at the other end of a ring, as its owner in `own` sees it.
std::uint16_t far_domain(const ipc::GroupShape& shape, const ipc::RingEnd& end, std::uint16_t own) {
  return end.domain == own ? shape.domain_of(end.home) : end.domain;
}

void add_rings(Rail& rail, const ipc::GroupShape& shape, std::uint16_t own, std::vector<Path>& paths) {
  const auto& home = rail.rings.as_home();
  const auto& forwarder = rail.rings.as_forwarder();
  // Written to while rings are added, never again: paths keep their addresses.
  rail.tx.resize(rail.rings.tx_count());
  rail.rx.resize(rail.rings.rx_count(), RxRing(shape.params().ring_slots));
  const auto add = [&](std::uint32_t tx, std::uint32_t rx, const ipc::RingEnd& end) {
    Path& path = paths[far_domain(shape, end, own)];
    rail.tx[tx] = TxRing{{Role::tx_chunk, &path, {}}, nullptr, tx, {}};
    rail.rx[rx].path = &path;
    rail.rx[rx].index = rx;
    path.outbound.push_back(&rail.tx[tx]);
    path.inbound.push_back(&rail.rx[rx]);
  };
  for (std::uint32_t i = 0; i < home.size(); ++i) add(rail.rings.tx_dispatch(i), rail.rings.rx_combine(i), home[i]);
  for (std::uint32_t i = 0; i < forwarder.size(); ++i) {
    add(rail.rings.tx_combine(i), rail.rings.rx_dispatch(i), forwarder[i]);
  }
}

void add_header_rings(Rail& rail, std::uint16_t own, std::vector<Path>& paths) {
  rail.headers.reserve(paths.size() - 1);
  for (Path& path : paths) {
    if (path.domain == own) continue;
    const auto index = static_cast<std::uint32_t>(rail.headers.size());
    rail.headers.push_back(HeaderTx{{Role::tx_header, &path, {}}, nullptr, index, {}});
    path.outbound.push_back(&rail.headers.back());
  }
}

}  // namespace

Result<std::unique_ptr<Group>> Group::create(GroupRails memory, const ProxyEvents& events) {
  if (auto good = check(memory); !good) return railhead::fail(good.error());
  std::unique_ptr<Group> group(new Group(std::move(memory), events));
  group->paths.resize(group->shape().domains());
  for (std::size_t d = 0; d < group->paths.size(); ++d) {
    group->paths[d].group = group.get();
    group->paths[d].domain = static_cast<std::uint16_t>(d);
  }
  if (auto added = group->add_rails(); !added) return railhead::fail(added.error());
  group->add_headers();
  return group;
}

Result<void> Group::add_rails() {
  rails.reserve(source_.ranks.size());
  for (const RailMemory& memory : source_.ranks) {
    auto words =
        ipc::RailWordsDaemon::attach(memory.words, ipc::RailWordsLayout(shape(), memory.rank), source_.generation);
    if (!words) return railhead::fail(words.error());
    Rail& rail = rails.emplace_back(*words, shape(), memory.rank);
    add_rings(rail, shape(), domain(), paths);
    add_header_rings(rail, domain(), paths);
    for (TxRing& ring : rail.tx) ring.rail = &rail;
    for (RxRing& ring : rail.rx) ring.rail = &rail;
    for (HeaderTx& ring : rail.headers) ring.rail = &rail;
  }
  return {};
}

void Group::add_headers() {
  const std::uint32_t slots = ipc::header_slots(shape().params().depth);
  headers.reserve(shape().ranks());
  for (std::uint32_t rank = 0; rank < shape().ranks(); ++rank) {
    Path& path = paths[shape().domain_of(rank)];
    if (path.domain == domain()) continue;
    HeaderRx& ring = headers.emplace_back(slots);
    ring.path = &path;
    ring.rank = static_cast<std::uint16_t>(rank);
    path.inbound.push_back(&ring);
  }
}

void Group::fail(std::uint16_t failed_domain, std::uint16_t rank, Status status) {
  stopped = true;
  if (closing || paths[failed_domain].failed) return;
  paths[failed_domain].failed = true;
  events_->failed(key(), failed_domain, rank, std::move(status));
}

}  // namespace railhead::daemon::rail
