// All groups of this daemon, as participant and as coordinator, and the way of their messages. Control thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config/config.hpp"
#include "daemon/group/coordinator.hpp"
#include "daemon/group/local_group.hpp"
#include "daemon/group/unique_id.hpp"

namespace railhead::daemon {

struct RegistrySurroundings {
  mesh::HostId host;
  std::string endpoint;
  const log::Log* log = nullptr;
  const config::Config* config = nullptr;
  std::vector<Proxy*> proxies;
  std::function<void(std::function<void()>)> post;  // later, on the control thread
  std::function<Status(const DaemonEntry& to, const GroupMessage&)> mesh_send;
  std::function<void(const DaemonEntry& peer, bool wanted)> retain;
  std::function<void(std::chrono::milliseconds, std::function<void()>)> after;
  std::function<void()> changed;
};

class GroupRegistry {
 public:
  explicit GroupRegistry(RegistrySurroundings around) : around_(std::move(around)) {}

  // A new id that this daemon will coordinate.
  Result<UniqueId> make_id(std::uint32_t session);
  // Ids that this session made and nobody joined are forgotten.
  void session_over(std::uint32_t session);
  // The group of this id, made when it is not known yet. limit_exceeded when there are too many.
  Result<std::shared_ptr<LocalGroup>> open(const UniqueId& id, const ipc::GroupParams& params);
  [[nodiscard]] std::shared_ptr<LocalGroup> find(const GroupKey& key) const;
  [[nodiscard]] const std::map<GroupKey, std::shared_ptr<LocalGroup>>& groups() const { return groups_; }

  void on_message(const mesh::HostId& from, GroupMessage message);
  void on_peer_lost(const DaemonEntry& peer, const Status& reason);
  void end_all(const Status& reason);

 private:
  struct Coordinated {
    std::unique_ptr<Coordinator> coordinator;
    std::chrono::steady_clock::time_point made;
    std::uint32_t session = 0;
    // Ranks are waited for since the first join, for their memory since the last.
    std::optional<std::chrono::steady_clock::time_point> waits_since{};
    bool announcing = false;
    std::optional<std::chrono::steady_clock::time_point> refused_at{};
  };

  void send(const DaemonEntry& to, GroupMessage message);
  void on_join(Coordinated& coordinated, const mesh::HostId& from, const JoinMessage& join);
  void watch_joining(const GroupKey& key);
  void look_at_joining(const GroupKey& key, Coordinated& coordinated);
  void announce_soon(const GroupKey& key);
  void sweep();
  void forget_coordinators();
  [[nodiscard]] std::uint64_t quota_left() const;

  RegistrySurroundings around_;
  std::map<GroupKey, std::shared_ptr<LocalGroup>> groups_;
  std::map<GroupKey, Coordinated> coordinators_;
  bool sweeping_ = false;
};

}  // namespace railhead::daemon
