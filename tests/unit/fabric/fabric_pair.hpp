// Two fabrics in one process, their registered memory, and what each has heard so far.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/fabric/factory.hpp"
#include "daemon/fabric/loopback.hpp"

namespace railhead::fabric::test {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

inline constexpr milliseconds kPatience{5000};
inline Deadline soon(milliseconds wait = kPatience) {
  return steady_clock::now() + wait;
}

inline Token make_token(std::uint8_t seed) {
  Token token{};
  for (std::size_t i = 0; i < token.size(); ++i) token[i] = static_cast<std::uint8_t>(seed + 7 * i + 1);
  return token;
}

struct Backend {
  std::string name;
  std::string provider;
  std::string endpoint;
  std::string faults;

  bool lossless() const { return faults.empty(); }
  FabricConfig config(const std::shared_ptr<LoopbackHub>& hub) const {
    return {.provider = provider, .endpoint = endpoint, .bind = "127.0.0.1", .port = 0, .faults = faults, .hub = hub};
  }
};

inline const std::vector<Backend>& all_backends() {
  static const std::vector<Backend> kBackends = {
      {"loopback", "loopback", "", ""},
      {"tcp_msg", "tcp", "msg", ""},
      {"rxm_rdm", "tcp;ofi_rxm", "rdm", ""},
      {"fault_loopback", "loopback", "", "seed=7,reorder=8,delay=16,dup=0.05,resend=0.05"},
      {"fault_tcp_msg", "tcp", "msg", "seed=7,reorder=8,delay=4,dup=0.05,resend=0.05"},
  };
  return kBackends;
}

// One side: a fabric, one region, and the events it got.
class Side {
 public:
  Side(const FabricConfig& config, std::size_t bytes) : memory(bytes) {
    auto made = make_fabric(config);
    if (!made) throw std::runtime_error(made.error().to_string());
    fabric = std::move(*made);
    region = fabric->register_memory(memory.data(), memory.size()).value();
    key = fabric->remote_key(region).value();
  }

  void poll() {
    std::array<Event, 32> batch;
    const std::size_t count = fabric->poll(batch);
    for (std::size_t i = 0; i < count; ++i) take(batch[i]);
  }

  std::vector<std::byte> memory;
  std::unique_ptr<Fabric> fabric;  // goes before the memory it has registered
  RegionId region{};
  RemoteKey key;

  std::vector<std::uint64_t> done;
  std::vector<std::pair<std::uint64_t, Status>> failed;
  std::deque<std::pair<PeerId, std::uint32_t>> immediates;
  std::map<PeerId, Token> up;
  std::map<PeerId, Status> down;
  std::size_t events_after_down = 0;

 private:
  void take(const Event& event) {
    if (down.contains(event.peer)) ++events_after_down;
    switch (event.kind) {
      case Event::Kind::write_done: return done.push_back(event.context);
      case Event::Kind::write_failed: failed.emplace_back(event.context, event.status); return;
      case Event::Kind::immediate:
        EXPECT_TRUE(up.contains(event.peer)) << "an immediate came before peer_up";
        immediates.emplace_back(event.peer, event.immediate);
        return;
      case Event::Kind::peer_up: up[event.peer] = event.token; return;
      case Event::Kind::peer_down:
        EXPECT_FALSE(down.contains(event.peer)) << "a peer went down twice";
        down[event.peer] = event.status;
        return;
    }
  }
};

inline bool poll_until(std::initializer_list<Side*> sides, const std::function<bool()>& ready,
                       milliseconds wait = kPatience) {
  const Deadline until = soon(wait);
  while (!ready()) {
    if (steady_clock::now() > until) return false;
    for (Side* side : sides) side->poll();
  }
  return true;
}

struct Connected {
  PeerId near;  // what `opener` calls the other
  PeerId far;
};

// Fails the test when the two do not come up.
inline Connected connect(Side& opener, Side& expecter, const Token& token) {
  const auto far = expecter.fabric->expect_peer(token, soon());
  EXPECT_TRUE(far) << far.error().to_string();
  const auto near = opener.fabric->open_peer(expecter.fabric->address(), token, soon());
  EXPECT_TRUE(near) << near.error().to_string();
  if (!near || !far) return {};
  EXPECT_TRUE(poll_until({&opener, &expecter}, [&] { return opener.up.contains(*near) && expecter.up.contains(*far); }))
      << (opener.down.contains(*near) ? opener.down[*near].to_string() : "neither up nor down");
  return {*near, *far};
}

// Posts and polls both until the write is taken.
inline Status post(Side& from, Side& to, const Write& write) {
  const Deadline until = soon();
  for (;;) {
    const auto state = from.fabric->post_write(write);
    if (!state) return state.error();
    if (*state == PostState::posted) return {};
    if (steady_clock::now() > until) return {Code::timeout, "the write was not taken"};
    from.poll();
    to.poll();
  }
}

}  // namespace railhead::fabric::test
