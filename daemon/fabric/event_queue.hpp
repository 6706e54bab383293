// Events that wait for the caller's next poll.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <utility>

#include "daemon/fabric/fabric.hpp"

namespace railhead::fabric {

class EventQueue {
 public:
  void write_done(PeerId peer, std::uint64_t context) {
    push({.kind = Event::Kind::write_done, .peer = peer, .context = context});
  }
  void write_failed(PeerId peer, std::uint64_t context, Status status) {
    push({.kind = Event::Kind::write_failed, .peer = peer, .context = context, .status = std::move(status)});
  }
  void immediate(PeerId peer, std::uint32_t value) {
    push({.kind = Event::Kind::immediate, .peer = peer, .immediate = value});
  }
  void peer_up(PeerId peer, const Token& token) { push({.kind = Event::Kind::peer_up, .peer = peer, .token = token}); }
  void peer_down(PeerId peer, const Token& token, Status status) {
    push({.kind = Event::Kind::peer_down, .peer = peer, .token = token, .status = std::move(status)});
  }
  void push(Event event) { events_.push_back(std::move(event)); }

  std::size_t take(std::span<Event> out) {
    const std::size_t count = std::min(out.size(), events_.size());
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = std::move(events_.front());
      events_.pop_front();
    }
    return count;
  }

  // Drops what a closed peer's caller no longer wants to hear; the ends of its writes stay.
  void forget_peer(PeerId peer) {
    std::erase_if(events_, [peer](const Event& event) {
      return event.peer == peer && event.kind != Event::Kind::write_done && event.kind != Event::Kind::write_failed;
    });
  }

  bool empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }

 private:
  std::deque<Event> events_;
};

}  // namespace railhead::fabric
