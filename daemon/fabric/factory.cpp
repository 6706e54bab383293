#include "daemon/fabric/factory.hpp"

#include "daemon/fabric/fault.hpp"
#include "daemon/fabric/loopback.hpp"
#include "daemon/fabric/ofi_msg.hpp"
#include "daemon/fabric/ofi_rdm.hpp"

namespace railhead::fabric {
namespace {

Result<std::unique_ptr<Fabric>> make_plain(const FabricConfig& config) {
  if (config.provider == "loopback") return LoopbackFabric::create(config.hub);
  if (config.endpoint == "msg") return OfiMsgFabric::create(config);
  if (config.endpoint == "rdm") return OfiRdmFabric::create(config);
  return fail(Code::invalid_argument, "fabric endpoint '" + config.endpoint + "' is unknown: use msg or rdm");
}

}  // namespace

Result<std::unique_ptr<Fabric>> make_fabric(const FabricConfig& config) {
  const auto faults = parse_faults(config.faults);
  if (!faults) return fail(faults.error());
  auto plain = make_plain(config);
  if (!plain || !faults->any()) return plain;
  return std::unique_ptr<Fabric>(std::make_unique<FaultFabric>(std::move(*plain), *faults));
}

}  // namespace railhead::fabric
