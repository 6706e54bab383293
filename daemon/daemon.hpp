// epd as a library: everything one daemon is, with no globals, so that a test can run several in one process.
#pragma once

#include <memory>
#include <string>

#include "daemon/config/config.hpp"
#include "daemon/fabric/factory.hpp"
#include "daemon/log/log.hpp"
#include "ipc/status.hpp"

namespace railhead::daemon {

struct DaemonOptions {
  config::Config config;
  std::shared_ptr<fabric::LoopbackHub> loopback;  // tests: for fabric.provider "loopback"
};

class Daemon {
 public:
  // Returns when clients can connect.
  static Result<std::unique_ptr<Daemon>> start(DaemonOptions options, log::Log log);
  virtual ~Daemon() = default;  // stops without draining

  // Any thread. Refuses new clients, waits for sessions up to drain_s, then ends what is left. The second call does not
  // wait for sessions.
  virtual void stop() = 0;
  // Until the daemon has stopped: by stop(), or by itself when it is private and nobody needs it.
  virtual void wait() = 0;

  [[nodiscard]] virtual std::string mesh_endpoint() const = 0;
  [[nodiscard]] virtual std::string host_id() const = 0;
};

}  // namespace railhead::daemon
