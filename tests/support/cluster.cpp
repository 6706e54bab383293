#include "tests/support/cluster.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "daemon/fabric/loopback.hpp"
#include "tests/support/operator.hpp"

namespace railhead::test {

Cluster::Cluster(const ClusterOptions& options) : under_faults_(!options.fault.empty()) {
  char name[] = "/tmp/railhead-test-XXXXXX";
  if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp failed");
  directory_ = name;
  std::shared_ptr<fabric::LoopbackHub> hub;
  if (options.provider == "loopback") hub = std::make_shared<fabric::LoopbackHub>();
  for (std::uint32_t h = 0; h < options.hosts; ++h) {
    daemon::DaemonOptions epd;
    epd.loopback = hub;
    epd.config.socket = directory_ + "/" + std::to_string(h) + ".sock";
    epd.config.fabric.provider = options.provider;
    epd.config.fabric.endpoint = options.endpoint;
    epd.config.fabric.bind = options.provider == "loopback" ? "" : "127.0.0.1";
    epd.config.fabric.fault = options.fault;
    epd.config.proxy.threads = options.proxies[std::min<std::size_t>(h, options.proxies.size() - 1)];
    // Silence says little on a machine that runs many tests at once; a closed connection still ends a peer at once.
    epd.config.mesh.timeout_ms = 30'000;
    epd.config.log.level = std::getenv("RAILHEAD_TEST_LOG") != nullptr ? std::getenv("RAILHEAD_TEST_LOG") : "error";
    if (options.adjust) options.adjust(epd.config);
    auto log = log::Log::make({epd.config.log.level, "stderr"});
    if (!log) throw std::runtime_error(log.error().to_string());
    sockets_.push_back(epd.config.socket);
    auto started = daemon::Daemon::start(std::move(epd), *log);
    if (!started) throw std::runtime_error(started.error().to_string());
    daemons_.push_back(std::move(*started));
  }
}

Cluster::~Cluster() {
  for (std::size_t h = 0; under_faults_ && h < daemons_.size(); ++h) {
    if (daemons_[h] != nullptr) expect_faults(sockets_[h]);
  }
  daemons_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void Cluster::run(const std::vector<std::uint16_t>& host_of_rank, const RankMain& f) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (const std::uint16_t host : host_of_rank) sessions.push_back(std::make_unique<Session>(sockets_[host]));
  const UniqueId id = sessions[0]->unique_id();
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < host_of_rank.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        f(rank, *sessions[rank], id);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace railhead::test
