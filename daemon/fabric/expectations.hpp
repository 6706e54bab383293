// Tokens that may connect: one use each, gone at their deadline. One thread.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/fabric/fabric.hpp"

namespace railhead::fabric {

class Expectations {
 public:
  struct Entry {
    PeerId peer;
    Token token;
    Deadline deadline;
  };

  Result<void> add(PeerId peer, const Token& token, Deadline deadline) {
    if (token == Token{}) return fail(Code::invalid_argument, "the connection token is all zero: draw a random one");
    if (!entries_.emplace(token, Entry{peer, token, deadline}).second) {
      return fail(Code::invalid_usage, "this connection token is already expected: draw a new one for each connection");
    }
    return {};
  }

  // The entry of a connecting peer; the token is used up. Nothing for a token that was never announced, was used, or
  // is past its deadline.
  std::optional<Entry> take(const Token& token) {
    const auto found = entries_.find(token);
    if (found == entries_.end() || std::chrono::steady_clock::now() > found->second.deadline) return std::nullopt;
    const Entry entry = found->second;
    entries_.erase(found);
    return entry;
  }

  void cancel(PeerId peer) {
    std::erase_if(entries_, [peer](const auto& item) { return item.second.peer == peer; });
  }

  std::vector<Entry> take_expired(Deadline now) {
    std::vector<Entry> expired;
    std::erase_if(entries_, [&](const auto& item) {
      if (now <= item.second.deadline) return false;
      expired.push_back(item.second);
      return true;
    });
    return expired;
  }

  bool empty() const { return entries_.empty(); }

 private:
  std::map<Token, Entry> entries_;
};

// The end of a peer that was expected and did not come.
inline Status not_come(PeerId peer) {
  return {Code::timeout,
          name_of(peer) + " did not connect before its deadline: look at the far daemon and at the path"};
}

}  // namespace railhead::fabric
