// Callers that were turned away, by the mesh above all: a rank that never comes may be behind one of them. One thread.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "ipc/status.hpp"

namespace railhead::daemon {

class TurnedAway {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether it is worth a log line: who is turned away comes again within milliseconds.
  bool note(const Status& reason) {
    const auto now = Clock::now();
    (reason.code() == Code::peer_lost ? left_ : faulty_) = {reason.message(), now};
    const auto said = said_.find(reason.message());
    if (said != said_.end() && now - said->second < kSayAgain) return false;
    if (said_.size() >= kMostReasons) said_.clear();
    said_[reason.message()] = now;
    return true;
  }

  // What a sentence about missing ranks adds, for one who waits since `then`; empty when nobody was turned away since
  // or shortly before: the other side may have called first, and some faults are not tried twice.
  [[nodiscard]] std::string since(Clock::time_point then) const {
    for (const Last* last : {&faulty_, &left_}) {
      if (!last->reason.empty() && last->at >= then - kLately) return "; lately the mesh turned away: " + last->reason;
    }
    return {};
  }

 private:
  static constexpr std::chrono::seconds kSayAgain{60};
  static constexpr std::chrono::seconds kLately{60};
  static constexpr std::size_t kMostReasons = 256;

  struct Last {
    std::string reason;
    Clock::time_point at;
  };
  // A caller with a wrong key calls again and again and gives up in the middle of a call: that it left says less.
  Last faulty_;
  Last left_;
  std::map<std::string, Clock::time_point> said_;
};

}  // namespace railhead::daemon
