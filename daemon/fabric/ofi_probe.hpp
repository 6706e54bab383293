// Finds the libfabric provider that was asked for, or says why not.
#pragma once

#include "daemon/fabric/factory.hpp"
#include "daemon/fabric/ofi_handle.hpp"

namespace railhead::fabric {

// The first fi_info of config.provider with the endpoint type that can write with remote CQ data of data_bytes.
// unavailable lists every provider seen and why it was refused.
Result<Info> probe_provider(const FabricConfig& config, fi_ep_type type, std::size_t data_bytes);

const char* endpoint_name(fi_ep_type type);

}  // namespace railhead::fabric
