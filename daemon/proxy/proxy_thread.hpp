// The thread of a proxy: runs the engine, takes commands of the control thread, and sleeps when there is nothing to do.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/proxy/engine.hpp"
#include "ipc/fd.hpp"

namespace railhead::daemon::rail {

class ProxyThread final : public Proxy {
 public:
  static Result<std::unique_ptr<Proxy>> start(const ProxyConfig& config, std::unique_ptr<Engine> engine);
  ~ProxyThread() override;

  void open_group(GroupRails rails) override;
  void connect_group(const GroupKey& key, std::uint16_t domain, WireOffer offer) override;
  void close_group(const GroupKey& key, CloseMode mode) override;
  void peer_quiesced(const GroupKey& key, std::uint16_t domain, Posted posted) override;
  void peer_lost(const DaemonId& daemon, const Status& reason) override;
  [[nodiscard]] int bell() const override { return bell_.get(); }
  [[nodiscard]] std::string fabric_address() const override { return address_; }
  void report(std::function<void(ProxyReport)> done) override;

 private:
  using Command = std::function<void(Engine&)>;
  using Clock = std::chrono::steady_clock;

  ProxyThread(const ProxyConfig& config, std::unique_ptr<Engine> engine, ipc::UniqueFd bell, std::string device);
  void run();
  bool step();
  bool run_commands();
  // True when something rang; false after a mere tick.
  bool sleep();
  bool wait(std::chrono::milliseconds tick);
  void push(Command command);
  void ring();

  ProxyConfig config_;
  std::unique_ptr<Engine> engine_;
  ipc::UniqueFd bell_;
  std::string address_;
  std::string device_;   // where the NIC is found in the topology
  std::string binding_;  // what came of it; the thread's own
  std::atomic<bool> stop_{false};
  std::atomic<bool> commanded_{false};  // spares a pass without commands the lock
  std::mutex mutex_;                    // guards commands_
  std::vector<Command> commands_;
  std::thread thread_;
};

}  // namespace railhead::daemon::rail
