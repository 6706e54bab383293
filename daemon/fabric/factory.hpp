// Makes a fabric from configuration.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/fabric/fabric.hpp"

namespace railhead::fabric {

class LoopbackHub;

struct FabricConfig {
  std::string provider = "tcp";        // a libfabric provider name, or "loopback"
  std::string endpoint = "msg";        // "msg" or "rdm"
  std::string bind{};                  // IP address or interface; empty: the provider chooses
  std::uint16_t port = 0;              // 0: any free one
  std::string faults{};                // fault_config.hpp; empty: none
  std::shared_ptr<LoopbackHub> hub{};  // for provider "loopback"
};

// unavailable says what was probed and why each candidate was refused; invalid_argument names a bad value.
Result<std::unique_ptr<Fabric>> make_fabric(const FabricConfig& config);

}  // namespace railhead::fabric
