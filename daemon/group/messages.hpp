// What daemons tell each other about one group, as plain values; encoded as mesh.capnp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/mesh/host_id.hpp"
#include "daemon/proxy/proxy.hpp"
#include "ipc/layout/shape.hpp"
#include "ipc/status.hpp"

namespace railhead::daemon {

struct JoinMessage {
  std::uint32_t rank = 0;
  std::array<std::uint8_t, 16> secret{};
  std::string endpoint;  // of the sender's mesh
  ipc::GroupParams params;
  std::uint32_t proxies = 1;  // of the sender
};
struct WithdrawMessage {
  std::uint32_t rank = 0;
  Status reason;
};
struct RefusedMessage {
  Status reason;
};
struct MissingMessage {
  std::vector<std::uint32_t> ranks;
};
struct AttachingMessage {
  std::vector<std::uint32_t> ranks;  // of the sender's host, without their memory yet
};
struct DaemonEntry {
  mesh::HostId host;
  std::string endpoint;  // of its mesh; a daemon that was started again is another one

  bool operator==(const DaemonEntry&) const = default;
};
struct MapMessage {
  std::uint32_t epoch = 0;
  std::vector<DaemonEntry> daemons;  // index = domain
  std::vector<std::uint16_t> domain_of_rank;
  std::uint32_t proxies = 1;  // as many as every daemon has
};
struct WireMessage {
  WireOffer offer;
};
struct WiredMessage {};
struct CommitMessage {};
struct FrozenMessage {
  Status reason;
  std::uint32_t rank = 0xffff;  // the cause; 0xffff = none
  std::uint64_t completed = 0;
};
struct LeftMessage {
  std::uint32_t rank = 0;
  std::uint64_t completed = 0;
  std::string reason;
};
struct RefusedCallMessage {
  std::uint32_t rank = 0;
  std::uint64_t op = 0;  // the number that the call would have had
  bool planned = false;  // the operation is published, its run was refused
  std::string reason;

  bool operator==(const RefusedCallMessage&) const = default;
};
struct QuiescedMessage {
  std::vector<std::pair<std::uint16_t, std::uint64_t>> posted;  // (receiver's ring number, slots)
};

struct GroupMessage {
  GroupKey group{};
  std::variant<JoinMessage, WithdrawMessage, RefusedMessage, MissingMessage, MapMessage, WireMessage, WiredMessage,
               CommitMessage, FrozenMessage, LeftMessage, QuiescedMessage, AttachingMessage, RefusedCallMessage>
      body;
};

std::vector<std::byte> encode(const GroupMessage& message);
// protocol error when the bytes are not such a message.
Result<GroupMessage> decode(std::span<const std::byte> bytes);

}  // namespace railhead::daemon
