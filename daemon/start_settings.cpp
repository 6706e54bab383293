#include "daemon/start_settings.hpp"

#include <chrono>

#include "daemon/control/listener.hpp"
#include "daemon/fabric/fault_config.hpp"
#include "daemon/fabric/ofi_address.hpp"
#include "daemon/mesh/endpoint.hpp"
#include "daemon/mesh/host_id.hpp"
#include "daemon/mesh/keys.hpp"

namespace railhead::daemon {
namespace {

Status of_key(const std::string& key, const Status& status) {
  return {status.code(), key + ": " + status.message()};
}

Status check_host_id(const config::Config& config) {
  const Status status = mesh::check_host_id_file(config.host_id_file);
  return status.ok() ? status : of_key("host_id_file", status);
}

Status check_fault(const config::Config& config) {
  const auto faults = fabric::parse_faults(config.fabric.fault);
  return faults ? Status() : of_key("fabric.fault is '" + config.fabric.fault + "'", faults.error());
}

Status check_rails(const config::Config& config) {
  if (config.fabric.provider == "loopback") return {};
  const auto bind = fabric::resolve_bind(fabric_bind(config));
  if (bind) return {};
  return of_key(config.fabric.bind.empty()
                    ? "fabric.bind is empty, so that the host of mesh.advertise or mesh.bind counts"
                    : "fabric.bind",
                bind.error());
}

Status check_mesh(const config::Config& config) {
  const auto mesh = mesh_config(config);
  return mesh ? mesh::check_settings(*mesh) : mesh.error();
}

}  // namespace

std::string fabric_bind(const config::Config& config) {
  if (!config.fabric.bind.empty() || config.fabric.provider == "loopback") return config.fabric.bind;
  const std::string& text = config.mesh.advertise.empty() ? config.mesh.bind : config.mesh.advertise;
  const auto endpoint = mesh::parse_endpoint(text, "mesh.bind");
  return endpoint && !endpoint->is_wildcard() ? endpoint->host : std::string();
}

Result<mesh::MeshConfig> mesh_config(const config::Config& config) {
  const config::MeshSection& section = config.mesh;
  mesh::MeshConfig out;
  out.bind = section.bind;
  out.advertise = section.advertise;
  out.insecure = section.insecure;
  out.heartbeat = std::chrono::milliseconds(section.heartbeat_ms);
  out.timeout = std::chrono::milliseconds(section.timeout_ms);
  if (!section.key_file.empty()) {
    auto keys = mesh::load_keys(section.key_file);
    if (!keys) return fail(of_key("mesh.key_file", keys.error()));
    out.keys = std::move(*keys);
  }
  return out;
}

Status check_start(const config::Config& config) {
  Status all;
  for (const Status& status :
       {check_socket(config), check_host_id(config), check_fault(config), check_rails(config), check_mesh(config)}) {
    if (status.ok()) continue;
    all = all.ok() ? status : Status(all.code(), all.message() + "\n  " + status.message());
  }
  return all;
}

}  // namespace railhead::daemon
