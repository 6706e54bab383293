// The fabrics over which proxies are tested, and daemons on one of them.
#pragma once

#include <ostream>
#include <string>

#include "tests/unit/proxy/fake_daemon.hpp"

namespace railhead::daemon {

struct FabricCase {
  std::string name;
  std::string provider;
  std::string faults;

  fabric::FabricConfig config(const std::shared_ptr<fabric::LoopbackHub>& hub) const {
    fabric::FabricConfig out;
    out.provider = provider;
    out.faults = faults;
    if (provider == "loopback") {
      out.hub = hub;
    } else {
      out.bind = "127.0.0.1";
    }
    return out;
  }
  friend std::ostream& operator<<(std::ostream& out, const FabricCase& item) { return out << item.name; }
};

inline const FabricCase kLoopback{"loopback", "loopback", ""};
inline const FabricCase kShuffled{"loopback_shuffled", "loopback", "seed=3,reorder=8,delay=6,dup=0.1,resend=0.05"};
inline const FabricCase kTcp{"tcp", "tcp", ""};
inline const FabricCase kTcpShuffled{"tcp_shuffled", "tcp", "seed=9,reorder=8,delay=6,dup=0.1"};

// Daemons 1 ... n on one fabric.
class Daemons {
 public:
  explicit Daemons(int count, const FabricCase& fabric = kLoopback) : fabric_(fabric) {
    for (int i = 0; i < count; ++i) add();
  }
  Daemon& add() {
    all_.push_back(std::make_unique<Daemon>(++last_id_, fabric_.config(hub_)));
    return *all_.back();
  }
  // Another daemon of the host of the i-th one, at an endpoint of its own.
  Daemon& replace(std::size_t i) {
    all_.push_back(std::make_unique<Daemon>(static_cast<std::uint8_t>(i + 1), fabric_.config(hub_)));
    all_.back()->endpoint = "the one in its place";
    return *all_.back();
  }
  Daemon& operator[](std::size_t i) { return *all_[i]; }
  void kill(std::size_t i) { all_[i]->proxy.reset(); }

 private:
  FabricCase fabric_;
  std::shared_ptr<fabric::LoopbackHub> hub_ = std::make_shared<fabric::LoopbackHub>();
  std::uint8_t last_id_ = 0;
  std::vector<std::unique_ptr<Daemon>> all_;
};

}  // namespace railhead::daemon
