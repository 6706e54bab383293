// The mesh thread: every socket and every peer's state belong to it alone; other threads reach it through the Outbox.
//
// A peer has two one-way links: `link`, which we dialled and write to, and `inbound`, which it dialled. It is up from
// the first proof of its identity (its hello, or its welcome to ours) and is dropped whole when either link fails.
// Split over three files: mesh_loop.cpp (thread, timers, commands), mesh_links.cpp (what we dial), mesh_inbound.cpp
// (who dials us).
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
#include <zmq.hpp>

#include "daemon/mesh/door_watch.hpp"
#include "daemon/mesh/key_gate.hpp"
#include "daemon/mesh/link.hpp"
#include "daemon/mesh/mesh.hpp"
#include "daemon/mesh/outbox.hpp"

namespace railhead::mesh {

class MeshLoop {
 public:
  MeshLoop(MeshConfig config, MeshHandlers handlers, std::shared_ptr<Outbox> outbox);
  ~MeshLoop();
  MeshLoop(const MeshLoop&) = delete;
  MeshLoop& operator=(const MeshLoop&) = delete;

  // Binds; returns what peers dial.
  Result<std::string> bind();
  // Starts the thread, with all signals blocked. It ends some time after the outbox is closed.
  Status start();
  void join();

 private:
  struct Peer {
    PeerAddress address;
    std::string advertised;  // how it calls itself; empty until hello or welcome
    bool up = false;
    bool needs_us = false;
    std::unique_ptr<Link> link;
    std::string inbound;  // route of its link to us; empty = none
    Clock::time_point inbound_heard;
    std::deque<zmq::message_t> pending;

    [[nodiscard]] bool is_at(const std::string& endpoint) const {
      return endpoint.empty() || endpoint == address.endpoint || endpoint == advertised;
    }
  };

  // mesh_loop.cpp
  void run();
  void round();
  void look_at_door();
  int poll();
  [[nodiscard]] int poll_timeout_ms() const;
  void take_commands();
  void obey(Command& command);
  void check_time();
  [[nodiscard]] std::optional<Status> overdue(const Peer& peer, Clock::time_point now) const;
  void settle(const HostId& id);
  void settle_up(Peer& peer);
  void tell_need(Peer& peer, bool need);
  [[nodiscard]] bool needs(const Peer& peer) const;
  [[nodiscard]] bool finished() const;
  void publish();
  Peer* find(const HostId& id);
  Result<Peer*> find_or_add(const PeerAddress& address);
  [[nodiscard]] bool still_connected(Peer& peer);
  void mark_up(Peer& peer);
  void lose(const HostId& id, const Status& reason);
  [[nodiscard]] Frame frame(FrameKind kind, const HostId& to) const;

  // mesh_links.cpp
  void dial(Peer& peer);
  void serve_link(const HostId& id);
  void on_link_event(const HostId& id, const LinkEvent& event);
  void on_link_lost(const HostId& id);
  void on_link_frame(const HostId& id, const Result<Frame>& received);
  void on_welcome(Peer& peer, const Frame& welcome);
  void send_hello(Peer& peer);
  void send_ping(Peer& peer, Clock::time_point now);
  void pump(Peer& peer);

  // mesh_inbound.cpp
  void drain_router();
  bool read_router();
  void on_inbound(const std::string& route, const Result<Frame>& received, const zmq::message_t* payload);
  void on_peer_frame(Peer& peer, const Frame& received, const zmq::message_t* payload);
  void on_hello(const std::string& route, const Frame& hello);
  [[nodiscard]] Status judge_hello(const Frame& hello);
  void refuse(const std::string& route, const Status& reason);
  SendOutcome welcome(const std::string& route, const HostId& peer);
  void reply(const std::string& route, const Frame& answer);

  const MeshConfig config_;
  const MeshHandlers handlers_;
  const std::shared_ptr<Outbox> outbox_;
  std::string endpoint_;

  zmq::context_t context_;  // before the sockets: they must go first
  std::optional<KeyGate> gate_;
  std::optional<zmq::socket_t> router_;
  std::optional<DoorWatch> door_;
  std::map<HostId, Peer> peers_;
  std::unordered_map<std::string, HostId> routes_;  // inbound route -> peer
  std::unordered_map<HostId, std::size_t, HostIdHash> retained_;
  std::vector<zmq_pollitem_t> items_;
  Clock::time_point last_check_;
  Clock::time_point stop_deadline_;
  bool stopping_ = false;
  bool changed_ = false;
  std::thread thread_;
};

}  // namespace railhead::mesh
