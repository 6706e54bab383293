// What the start makes of the configuration, and what it refuses in it.
#pragma once

#include <string>

#include "daemon/config/config.hpp"
#include "daemon/mesh/mesh.hpp"
#include "ipc/status.hpp"

namespace railhead::daemon {

// Where data connections are made when fabric.bind does not say: beside the mesh.
std::string fabric_bind(const config::Config& config);

// With the keys of mesh.key_file; without a host id.
Result<mesh::MeshConfig> mesh_config(const config::Config& config);

// The first step of a start, and all of --check-config: values that the start would refuse, one line each, by the very
// functions that read them. Opens no socket and writes nothing.
Status check_start(const config::Config& config);

}  // namespace railhead::daemon
