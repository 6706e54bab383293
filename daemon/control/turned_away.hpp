// Callers that were turned away, by the mesh above all: a rank that never comes may be behind one of them. One thread.
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace railhead::daemon {

class TurnedAway {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether it is worth a log line: who is turned away comes again within milliseconds.
  bool note(const std::string& reason) {
    last_ = reason;
    last_at_ = Clock::now();
    if (const auto said = said_.find(reason); said != said_.end() && last_at_ - said->second < kSayAgain) return false;
    if (said_.size() >= kMostReasons) said_.clear();
    said_[reason] = last_at_;
    return true;
  }

  // What a sentence about missing ranks adds; empty when nobody was turned away since then.
  [[nodiscard]] std::string since(Clock::time_point then) const {
    return last_.empty() || last_at_ < then ? std::string() : "; meanwhile the mesh turned away: " + last_;
  }

 private:
  static constexpr std::chrono::seconds kSayAgain{60};
  static constexpr std::size_t kMostReasons = 256;

  std::string last_;
  Clock::time_point last_at_;
  std::map<std::string, Clock::time_point> said_;
};

}  // namespace railhead::daemon
