#include "daemon/group/messages.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <algorithm>

#include "ipc/rpc.hpp"
#include "ipc/schema/mesh.capnp.h"

namespace railhead::daemon {
namespace {

template <class A>
kj::ArrayPtr<const kj::byte> bytes_of(const A& array) {
  return kj::arrayPtr(array.data(), array.size());
}

template <class A>
A array_of(capnp::Data::Reader data, const char* what) {
  A out{};
  KJ_REQUIRE(data.size() == out.size(), what, data.size());
  std::copy(data.begin(), data.end(), out.begin());
  return out;
}

void put(schema::MeshMessage::Builder out, const JoinMessage& m) {
  auto join = out.initJoin();
  join.setRank(m.rank);
  join.setSecret(bytes_of(m.secret));
  join.setEndpoint(m.endpoint);
  ipc::fill(join.initParams(), m.params);
  join.setProxies(m.proxies);
}
void put(schema::MeshMessage::Builder out, const WithdrawMessage& m) {
  auto withdraw = out.initWithdraw();
  withdraw.setRank(m.rank);
  withdraw.setCode(static_cast<std::uint16_t>(m.reason.code()));
  withdraw.setReason(m.reason.message());
}
void put(schema::MeshMessage::Builder out, const RefusedMessage& m) {
  auto refused = out.initRefused();
  refused.setCode(static_cast<std::uint16_t>(m.reason.code()));
  refused.setReason(m.reason.message());
}
void put(schema::Missing::Builder out, const std::vector<std::uint32_t>& list) {
  auto ranks = out.initRanks(static_cast<capnp::uint>(list.size()));
  for (capnp::uint i = 0; i < ranks.size(); ++i) ranks.set(i, list[i]);
}
void put(schema::MeshMessage::Builder out, const MissingMessage& m) {
  put(out.initMissing(), m.ranks);
}
void put(schema::MeshMessage::Builder out, const AttachingMessage& m) {
  put(out.initAttaching(), m.ranks);
}
void put(schema::MeshMessage::Builder out, const MapMessage& m) {
  auto map = out.initMap();
  map.setEpoch(m.epoch);
  auto daemons = map.initDaemons(static_cast<capnp::uint>(m.daemons.size()));
  for (capnp::uint i = 0; i < daemons.size(); ++i) {
    daemons[i].setHostId(bytes_of(m.daemons[i].host.bytes));
    daemons[i].setEndpoint(m.daemons[i].endpoint);
  }
  auto ranks = map.initDaemonOfRank(static_cast<capnp::uint>(m.domain_of_rank.size()));
  for (capnp::uint i = 0; i < ranks.size(); ++i) ranks.set(i, m.domain_of_rank[i]);
  map.setProxies(m.proxies);
}
void put(schema::MeshMessage::Builder out, const WireMessage& m) {
  auto wire = out.initWire();
  wire.setFabricAddress(
      kj::arrayPtr(reinterpret_cast<const kj::byte*>(m.offer.fabric_address.data()), m.offer.fabric_address.size()));
  wire.setToken(bytes_of(m.offer.token));
  wire.setCreditKey(m.offer.credits.key);
  wire.setCreditBase(m.offer.credits.base);
  auto rings = wire.initRings(static_cast<capnp::uint>(m.offer.rings.size()));
  for (capnp::uint i = 0; i < rings.size(); ++i) {
    const WireOffer::Ring& ring = m.offer.rings[i];
    rings[i].setKind(ring.kind);
    rings[i].setRank(ring.rank);
    rings[i].setIndex(ring.index);
    rings[i].setNumber(ring.number);
    rings[i].setGeneration(ring.generation);
    rings[i].setKey(ring.slots.key);
    rings[i].setBase(ring.slots.base);
  }
}
void put(schema::MeshMessage::Builder out, const WiredMessage&) {
  out.setWired();
}
void put(schema::MeshMessage::Builder out, const CommitMessage&) {
  out.setCommit();
}
void put(schema::MeshMessage::Builder out, const FrozenMessage& m) {
  auto frozen = out.initFrozen();
  frozen.setCode(static_cast<std::uint16_t>(m.reason.code()));
  frozen.setReason(m.reason.message());
  frozen.setRank(m.rank);
  frozen.setCompleted(m.completed);
}
void put(schema::MeshMessage::Builder out, const LeftMessage& m) {
  auto left = out.initLeft();
  left.setRank(m.rank);
  left.setCompleted(m.completed);
  left.setReason(m.reason);
}
void put(schema::MeshMessage::Builder out, const RefusedCallMessage& m) {
  auto refused = out.initRefusedCall();
  refused.setRank(m.rank);
  refused.setOp(m.op);
  refused.setPlanned(m.planned);
  refused.setReason(m.reason);
}
void put(schema::MeshMessage::Builder out, const QuiescedMessage& m) {
  auto posted = out.initQuiesced().initPosted(static_cast<capnp::uint>(m.posted.size()));
  for (capnp::uint i = 0; i < posted.size(); ++i) {
    posted[i].setNumber(m.posted[i].first);
    posted[i].setCount(m.posted[i].second);
  }
}

std::vector<std::uint32_t> get(schema::Missing::Reader in) {
  std::vector<std::uint32_t> ranks;
  for (const auto rank : in.getRanks()) ranks.push_back(rank);
  return ranks;
}
MapMessage get(schema::Map::Reader in) {
  MapMessage out;
  out.epoch = in.getEpoch();
  for (auto entry : in.getDaemons()) {
    out.daemons.push_back(
        {{array_of<std::array<std::uint8_t, 16>>(entry.getHostId(), "host id")}, entry.getEndpoint().cStr()});
  }
  for (const auto domain : in.getDaemonOfRank()) {
    KJ_REQUIRE(domain < out.daemons.size(), "domain beyond the daemons", domain);
    out.domain_of_rank.push_back(domain);
  }
  out.proxies = in.getProxies();
  return out;
}

WireMessage get(schema::Wire::Reader in) {
  WireMessage out;
  const auto address = in.getFabricAddress();
  out.offer.fabric_address.assign(address.begin(), address.end());
  out.offer.token = array_of<Token>(in.getToken(), "token");
  out.offer.credits = {in.getCreditKey(), in.getCreditBase()};
  for (auto ring : in.getRings()) {
    KJ_REQUIRE(ring.getRank() < ipc::kMaxRanks, "rank", ring.getRank());
    out.offer.rings.push_back({ring.getKind(),
                               static_cast<std::uint16_t>(ring.getRank()),
                               ring.getIndex(),
                               ring.getNumber(),
                               ring.getGeneration(),
                               {ring.getKey(), ring.getBase()}});
  }
  return out;
}

void get(schema::MeshMessage::Reader in, GroupMessage& out) {
  switch (in.which()) {
    case schema::MeshMessage::JOIN: {
      const auto join = in.getJoin();
      out.body = JoinMessage{join.getRank(), array_of<std::array<std::uint8_t, 16>>(join.getSecret(), "secret"),
                             join.getEndpoint().cStr(), ipc::read(join.getParams()), join.getProxies()};
      return;
    }
    case schema::MeshMessage::WITHDRAW: {
      const auto withdraw = in.getWithdraw();
      out.body =
          WithdrawMessage{withdraw.getRank(), {static_cast<Code>(withdraw.getCode()), withdraw.getReason().cStr()}};
      return;
    }
    case schema::MeshMessage::REFUSED:
      out.body = RefusedMessage{{static_cast<Code>(in.getRefused().getCode()), in.getRefused().getReason().cStr()}};
      return;
    case schema::MeshMessage::MISSING: out.body = MissingMessage{get(in.getMissing())}; return;
    case schema::MeshMessage::ATTACHING: out.body = AttachingMessage{get(in.getAttaching())}; return;
    case schema::MeshMessage::MAP: out.body = get(in.getMap()); return;
    case schema::MeshMessage::WIRE: out.body = get(in.getWire()); return;
    case schema::MeshMessage::WIRED: out.body = WiredMessage{}; return;
    case schema::MeshMessage::COMMIT: out.body = CommitMessage{}; return;
    case schema::MeshMessage::FROZEN: {
      const auto frozen = in.getFrozen();
      out.body = FrozenMessage{
          {static_cast<Code>(frozen.getCode()), frozen.getReason().cStr()}, frozen.getRank(), frozen.getCompleted()};
      return;
    }
    case schema::MeshMessage::LEFT: {
      const auto left = in.getLeft();
      out.body = LeftMessage{left.getRank(), left.getCompleted(), left.getReason().cStr()};
      return;
    }
    case schema::MeshMessage::REFUSED_CALL: {
      const auto refused = in.getRefusedCall();
      out.body =
          RefusedCallMessage{refused.getRank(), refused.getOp(), refused.getPlanned(), refused.getReason().cStr()};
      return;
    }
    case schema::MeshMessage::QUIESCED: {
      QuiescedMessage quiesced;
      for (auto posted : in.getQuiesced().getPosted()) {
        quiesced.posted.emplace_back(posted.getNumber(), posted.getCount());
      }
      out.body = std::move(quiesced);
      return;
    }
  }
  KJ_FAIL_REQUIRE("unknown kind of message");
}

}  // namespace

std::vector<std::byte> encode(const GroupMessage& message) {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<schema::MeshMessage>();
  root.setGroup(bytes_of(message.group));
  std::visit([&](const auto& body) { put(root, body); }, message.body);
  const auto words = capnp::messageToFlatArray(builder);
  const auto bytes = words.asBytes();
  const auto* const first = reinterpret_cast<const std::byte*>(bytes.begin());
  return {first, first + bytes.size()};
}

Result<GroupMessage> decode(std::span<const std::byte> bytes) {
  GroupMessage out;
  const auto parsed = kj::runCatchingExceptions([&] {
    // A copy: the mesh gives no alignment.
    auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
    KJ_REQUIRE(words.size() * sizeof(capnp::word) == bytes.size(), "not whole words", bytes.size());
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(words.begin()));
    // Lists of empty elements take no room in the bytes: without a limit of its own a message of 400 bytes becomes 8 M
    // rings. What is read once or twice stays far below this.
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 4 * words.size() + 64;
    capnp::FlatArrayMessageReader reader(words, options);
    const auto root = reader.getRoot<schema::MeshMessage>();
    out.group = array_of<GroupKey>(root.getGroup(), "group key");
    get(root, out);
  });
  KJ_IF_MAYBE (error, parsed) {
    return fail(Code::protocol, std::string("mesh message: ") + error->getDescription().cStr());
  }
  return out;
}

}  // namespace railhead::daemon
