// Everything a proxy does, without its thread: one pass at a time. One thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "daemon/proxy/arrivals.hpp"
#include "daemon/proxy/closing.hpp"
#include "daemon/proxy/poster.hpp"
#include "daemon/proxy/submissions.hpp"

namespace railhead::daemon::rail {

class Engine {
 public:
  Engine(std::unique_ptr<fabric::Fabric> fabric, const ProxyConfig& config, ProxyEvents events);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // One pass over everything that could have happened. True if anything had.
  bool step();
  // Something waits for an event that wakes nobody: a window, room in the fabric's queue.
  [[nodiscard]] bool must_look_soon() const;

  void open(GroupRails rails);
  void connect(const GroupKey& key, std::uint16_t domain, const WireOffer& offer);
  void close(const GroupKey& key, CloseMode mode);
  void peer_quiesced(const GroupKey& key, std::uint16_t domain, Posted posted);
  void peer_lost(const DaemonId& daemon, const Status& reason) { peers_.close(daemon, reason); }
  [[nodiscard]] ProxyReport report() const;

  [[nodiscard]] fabric::Fabric& fabric() noexcept { return *fabric_; }

 private:
  bool poll_fabric();
  void handle(const fabric::Event& event);
  bool step_closing();
  bool step_submissions(Group& group);
  static void begin_draining(Group& group);
  void begin_closing(Group& group, CloseMode mode);
  [[nodiscard]] Group* find(const GroupKey& key) const;
  Path* find_path(const GroupKey& key, std::uint16_t domain) const;

  static constexpr std::size_t kEventsPerPoll = 64;

  std::unique_ptr<fabric::Fabric> fabric_;  // outlives everything that is registered with it
  ProxyEvents events_;
  Peers peers_;
  Poster poster_;
  Submissions submissions_;
  Arrivals arrivals_;
  Closing closing_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::size_t closing_groups_ = 0;
  std::array<fabric::Event, kEventsPerPoll> batch_;
};

}  // namespace railhead::daemon::rail
