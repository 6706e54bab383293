// A Mesh that writes down what its handlers are told, and lets a test wait for it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/mesh/mesh.hpp"

namespace railhead::mesh {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Everything is guarded by `mutex`, which wait() holds while it tests; tests read through the copies.
struct MeshLog {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<HostId, std::string>> messages;
  std::map<HostId, int> ups;
  std::vector<std::pair<HostId, Status>> downs;
  std::vector<Status> refused;

  bool wait(const std::function<bool()>& done, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, limit, done);
  }
  bool wait_messages(std::size_t count) {
    return wait([&] { return messages.size() >= count; });
  }
  bool wait_up(const HostId& peer, int times = 1) {
    return wait([&] { return ups[peer] >= times; });
  }
  // The reason of the first loss of `peer`.
  std::optional<Status> wait_down(const HostId& peer, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    std::optional<Status> reason;
    wait(
        [&] {
          for (const auto& [id, status] : downs) {
            if (id == peer && !reason) reason = status;
          }
          return reason.has_value();
        },
        limit);
    return reason;
  }

  std::vector<std::pair<HostId, std::string>> all_messages() { return copy(messages); }
  std::vector<std::pair<HostId, Status>> all_downs() { return copy(downs); }
  std::vector<Status> all_refused() { return copy(refused); }
  std::map<HostId, int> all_ups() { return copy(ups); }

  template <class T>
  T copy(const T& part) {
    const std::lock_guard lock(mutex);
    return part;
  }
  template <class Change>
  void note(Change change) {
    const std::lock_guard lock(mutex);
    change();
    changed.notify_all();
  }
};

class MeshNode {
 public:
  explicit MeshNode(MeshConfig config = {}) {
    if (config.host_id == HostId{}) config.host_id = random_host_id().value();
    MeshHandlers handlers;
    handlers.on_message = [this](const HostId& from, std::span<const std::byte> message) {
      const std::string text(reinterpret_cast<const char*>(message.data()), message.size());
      if (on_text) on_text(from, text);
      log.note([&] { log.messages.emplace_back(from, text); });
    };
    handlers.on_peer_up = [this](const PeerAddress& peer) { log.note([&] { ++log.ups[peer.host_id]; }); };
    handlers.on_peer_down = [this](const PeerAddress& peer, const Status& reason) {
      log.note([&] { log.downs.emplace_back(peer.host_id, reason); });
    };
    handlers.on_refused = [this](const Status& reason) { log.note([&] { log.refused.push_back(reason); }); };
    auto started = Mesh::start(std::move(config), std::move(handlers));
    if (started) {
      mesh = std::move(*started);
    } else {
      ADD_FAILURE() << started.error().to_string();
    }
  }

  [[nodiscard]] PeerAddress address() const { return {mesh->endpoint(), mesh->host_id()}; }
  [[nodiscard]] HostId id() const { return mesh->host_id(); }
  Status send(const PeerAddress& peer, std::string_view text) { return mesh->send(peer, bytes_of(text)); }

  MeshLog log;
  std::function<void(const HostId&, const std::string&)> on_text;  // set before traffic; mesh thread
  std::unique_ptr<Mesh> mesh;                                      // last: stops before the rest goes
};

}  // namespace railhead::mesh
