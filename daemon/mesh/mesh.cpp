#include "daemon/mesh/mesh.hpp"

#include <zmq.h>

#include <utility>

#include "daemon/mesh/endpoint.hpp"
#include "daemon/mesh/mesh_loop.hpp"
#include "daemon/mesh/outbox.hpp"

namespace railhead::mesh {
namespace {

Status check_times(const MeshConfig& config) {
  if (config.heartbeat.count() < 1 || config.timeout < 2 * config.heartbeat || config.timeout.count() > 3'600'000) {
    return {Code::invalid_argument,
            "mesh.heartbeat_ms is " + std::to_string(config.heartbeat.count()) + " and mesh.timeout_ms " +
                std::to_string(config.timeout.count()) +
                ": the heartbeat must be at least 1 and at most half the timeout, the timeout " + "at most 3600000"};
  }
  return {};
}

Status check_exposure(const MeshConfig& config, const Endpoint& bind) {
  if (config.keys && zmq_has("curve") != 1) {
    return {Code::unavailable, "mesh.key_file is set but this libzmq is built without CURVE"};
  }
  if (config.keys || config.insecure || bind.is_loopback()) return {};
  return {Code::permission,
          "mesh.bind is " + config.bind +
              ", which other hosts can reach, and there are no keys: make some with 'epctl keygen FILE', "
              "give the same file to every daemon as mesh.key_file, or accept the risk with --insecure"};
}

}  // namespace

Status check_settings(const MeshConfig& config) {
  if (Status status = check_times(config); !status.ok()) return status;
  const auto bind = parse_endpoint(config.bind, "mesh.bind");
  if (!bind) return bind.error();
  if (Status status = check_exposure(config, *bind); !status.ok()) return status;
  if (config.advertise.empty() && bind->is_wildcard()) {
    return {Code::invalid_argument, "mesh.bind is " + config.bind +
                                        ", an address nobody can dial: set mesh.advertise to tcp://HOST:0 with this "
                                        "host's address"};
  }
  if (config.advertise.empty()) return {};
  const auto advertise = parse_endpoint(config.advertise, "mesh.advertise");
  if (!advertise) return advertise.error();
  if (advertise->is_wildcard()) {
    return {Code::invalid_argument, "mesh.advertise is " + config.advertise + ", an address nobody can dial"};
  }
  return {};
}

Mesh::Mesh(HostId host_id, std::string endpoint, std::shared_ptr<Outbox> outbox)
    : host_id_(host_id), endpoint_(std::move(endpoint)), outbox_(std::move(outbox)) {}

Mesh::~Mesh() {
  stop();
}

Result<std::unique_ptr<Mesh>> Mesh::start(MeshConfig config, MeshHandlers handlers) {
  if (config.host_id == HostId{}) return fail(Code::invalid_argument, "the mesh needs a host id that is not all zero");
  if (Status status = check_settings(config); !status.ok()) return fail(std::move(status));
  const HostId host_id = config.host_id;
  auto outbox = std::make_shared<Outbox>(config.queue_messages, config.queue_bytes);
  if (Status status = outbox->init(); !status.ok()) return fail(std::move(status));
  auto loop = std::make_unique<MeshLoop>(std::move(config), std::move(handlers), outbox);
  auto endpoint = loop->bind();
  if (!endpoint) return fail(std::move(endpoint.error()));
  std::unique_ptr<Mesh> mesh(new Mesh(host_id, std::move(*endpoint), std::move(outbox)));
  if (Status status = loop->start(); !status.ok()) return fail(std::move(status));
  mesh->loop_ = std::move(loop);
  return mesh;
}

Status Mesh::send(const PeerAddress& peer, std::span<const std::byte> message) {
  if (message.size() > kMaxMessageBytes) {
    return {Code::limit_exceeded, "a mesh message of " + std::to_string(message.size()) + " bytes to " +
                                      peer.host_id.hex() + " exceeds the limit of " + std::to_string(kMaxMessageBytes)};
  }
  if (Status status = check_peer(peer); !status.ok()) return status;
  return outbox_->push_message(peer, message);
}

Status Mesh::retain(const PeerAddress& peer) {
  if (Status status = check_peer(peer); !status.ok()) return status;
  return outbox_->push(Command::Kind::retain, peer);
}

Status Mesh::release(const HostId& peer) {
  return outbox_->push(Command::Kind::release, {"", peer});
}

std::vector<PeerInfo> Mesh::peers() const {
  return outbox_->snapshot();
}

void Mesh::stop() {
  outbox_->close();
  if (loop_) loop_->join();
}

Status Mesh::check_peer(const PeerAddress& peer) const {
  if (peer.host_id == host_id_ || peer.host_id == HostId{}) {
    return {Code::invalid_argument, "host id " + peer.host_id.hex() + " is " +
                                        (peer.host_id == host_id_ ? "this daemon itself" : "not set") +
                                        ": the mesh reaches other daemons only"};
  }
  if (peer.endpoint.empty()) return {};
  const auto parsed = parse_endpoint(peer.endpoint, "the peer's endpoint");
  return parsed ? Status() : parsed.error();
}

}  // namespace railhead::mesh
