// The unique id of a group to be: who coordinates it, its key, and the secret that only its ranks know.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "daemon/mesh/host_id.hpp"
#include "daemon/proxy/proxy.hpp"
#include "ipc/status.hpp"

namespace railhead::daemon {

struct UniqueId {
  GroupKey key{};
  std::array<std::uint8_t, 16> secret{};
  mesh::HostId host;
  std::string endpoint;  // of the coordinator's mesh
};

// Bytes that fit the 256 of rh_unique_id.
Result<std::vector<std::uint8_t>> encode(const UniqueId& id);
// Trailing zeros are allowed; invalid_argument for anything that is not an id.
Result<UniqueId> decode_unique_id(std::span<const std::uint8_t> bytes);

// From the kernel's random source.
Result<std::array<std::uint8_t, 16>> random_bytes();
// "3f2a91c0": the first half of a key, for people.
std::string short_name(const GroupKey& key);

}  // namespace railhead::daemon
