// Several daemons in this process, as several hosts, and ranks as threads: what a test of the whole needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/daemon.hpp"
#include "railhead/railhead.hpp"

namespace railhead::test {

struct ClusterOptions {
  std::uint32_t hosts = 1;
  std::string provider = "tcp";
  std::string endpoint = "msg";
  std::string fault{};                            // fabric.fault of every daemon
  std::vector<std::int64_t> proxies = {1};        // by host; the last is that of all further ones, too
  std::function<void(config::Config&)> adjust{};  // further settings
};

class Cluster {
 public:
  // Throws std::runtime_error when a daemon does not start.
  explicit Cluster(const ClusterOptions& options);
  // Fails the test when it asked for faults and a daemon injected none.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  [[nodiscard]] const std::string& socket(std::uint32_t host) const { return sockets_[host]; }
  [[nodiscard]] std::uint32_t hosts() const { return static_cast<std::uint32_t>(sockets_.size()); }
  [[nodiscard]] daemon::Daemon& daemon(std::uint32_t host) { return *daemons_[host]; }
  // As if the host's daemon had crashed, seen from its peers; its clients lose it, too.
  void stop(std::uint32_t host) { daemons_[host].reset(); }

  // Runs f once per rank, each on a thread of its own with a session at its host's daemon; rethrows the first failure
  // after all have ended. The unique id is made by rank 0's daemon.
  using RankMain = std::function<void(std::uint32_t rank, const Session& session, const UniqueId& id)>;
  void run(const std::vector<std::uint16_t>& host_of_rank, const RankMain& f);

 private:
  std::string directory_;
  bool under_faults_;
  std::vector<std::string> sockets_;
  std::vector<std::unique_ptr<daemon::Daemon>> daemons_;
};

}  // namespace railhead::test
