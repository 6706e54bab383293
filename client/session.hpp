// One process and its daemon.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/daemon_link.hpp"
#include "ipc/status.hpp"

namespace railhead::client {

struct SessionConfig {
  std::string daemon;
  std::string job;
  Milliseconds timeout = 10'000;
};

class Session {
 public:
  static Result<std::shared_ptr<Session>> open(const SessionConfig& config);

  [[nodiscard]] DaemonLink& link() { return *link_; }

 private:
  explicit Session(std::unique_ptr<DaemonLink> link) : link_(std::move(link)) {}

  std::unique_ptr<DaemonLink> link_;
};

}  // namespace railhead::client
