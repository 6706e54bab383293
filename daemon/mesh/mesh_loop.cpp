#include "daemon/mesh/mesh_loop.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/mesh/endpoint.hpp"

namespace railhead::mesh {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGoodbye{200};  // Mesh::stop waits this long for peers to read what was queued
constexpr int kSocketsPerPeer = 3;     // DEALER, monitor, and the monitor's other end inside ZeroMQ

}  // namespace

MeshLoop::MeshLoop(MeshConfig config, MeshHandlers handlers, std::shared_ptr<Outbox> outbox)
    : config_(std::move(config)), handlers_(std::move(handlers)), outbox_(std::move(outbox)) {
  context_.set(zmq::ctxopt::max_sockets, kSocketsPerPeer * static_cast<int>(config_.max_peers) + 16);
}

MeshLoop::~MeshLoop() {
  join();
}

Result<std::string> MeshLoop::bind() {
  const auto wanted = parse_endpoint(config_.bind, "mesh.bind");
  if (!wanted) return fail(wanted.error());
  try {
    if (config_.keys) gate_.emplace(context_, *config_.keys);
    router_.emplace(context_, zmq::socket_type::router);
    configure_socket(*router_, config_, !wanted->is_v4_literal(), true);
    router_->set(zmq::sockopt::router_mandatory, true);  // an ended connection is an error, not silence
    router_->set(zmq::sockopt::router_handover, true);   // a link that re-connects while dialling keeps its route
    door_.emplace(context_, *router_);
    router_->bind(config_.bind);
    const auto bound = parse_endpoint(router_->get(zmq::sockopt::last_endpoint), "the bound mesh address");
    if (!bound) return fail(bound.error());
    auto shown = config_.advertise.empty() ? bound : parse_endpoint(config_.advertise, "mesh.advertise");
    if (!shown) return fail(shown.error());
    if (shown->port == 0) shown->port = bound->port;
    endpoint_ = shown->text();
    return endpoint_;
  } catch (const zmq::error_t& error) {
    return fail(Code::unavailable, "cannot bind mesh.bind = " + config_.bind + ": " + error.what());
  }
}

Status MeshLoop::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    last_check_ = Clock::now();
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    status = system_status("cannot start the mesh thread", error.code().value());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

void MeshLoop::join() {
  if (thread_.joinable()) thread_.join();
}

void MeshLoop::run() {
  pthread_setname_np(pthread_self(), "epd-mesh");
  try {
    while (!finished()) round();
  } catch (const zmq::error_t& error) {
    outbox_->close();
    const Status failed(Code::internal, std::string("the mesh thread ends: ") + error.what());
    if (handlers_.on_failed) handlers_.on_failed(failed);
    while (!peers_.empty()) {
      const HostId id = peers_.begin()->first;  // a copy: lose() frees the entry
      lose(id, failed);
    }
  }
  peers_.clear();
  outbox_->publish({});
}

void MeshLoop::round() {
  if (poll() < 0) return;
  look_at_door();
  drain_router();
  std::vector<HostId> ids;
  for (const auto& [id, peer] : peers_) ids.push_back(id);
  for (const HostId& id : ids) serve_link(id);
  take_commands();
  check_time();
  ids.clear();
  for (const auto& [id, peer] : peers_) ids.push_back(id);
  for (const HostId& id : ids) settle(id);
  if (std::exchange(changed_, false)) publish();
}

void MeshLoop::look_at_door() {
  while (gate_) {
    const auto turned_away = gate_->answer();
    if (turned_away && handlers_.on_refused) handlers_.on_refused({Code::permission, *turned_away});
    if ((gate_->socket().get(zmq::sockopt::events) & ZMQ_POLLIN) == 0) break;
  }
  while (const auto turned_away = door_->next()) {
    if (handlers_.on_refused && !stopping_) handlers_.on_refused(*turned_away);
  }
}

int MeshLoop::poll() {
  items_.clear();
  items_.push_back({nullptr, outbox_->bell(), ZMQ_POLLIN, 0});
  items_.push_back({router_->handle(), 0, ZMQ_POLLIN, 0});
  items_.push_back({door_->socket().handle(), 0, ZMQ_POLLIN, 0});
  if (gate_) items_.push_back({gate_->socket().handle(), 0, ZMQ_POLLIN, 0});
  for (auto& [id, peer] : peers_) {
    if (!peer.link) continue;
    const bool waits_for_room = peer.link->state == Link::State::up && !peer.pending.empty();
    const auto events = static_cast<short>(waits_for_room ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN);
    items_.push_back({peer.link->socket().handle(), 0, events, 0});
    items_.push_back({peer.link->monitor().handle(), 0, ZMQ_POLLIN, 0});
  }
  const int ready = zmq_poll(items_.data(), static_cast<int>(items_.size()), poll_timeout_ms());
  if (ready < 0 && zmq_errno() != EINTR) throw zmq::error_t();
  return ready;
}

int MeshLoop::poll_timeout_ms() const {
  if (stopping_) return 10;
  if (peers_.empty()) return -1;  // nothing is due: sleep until someone calls
  const auto now = Clock::now();
  auto due = now + config_.heartbeat;
  for (const auto& [id, peer] : peers_) {
    if (peer.link && peer.link->state == Link::State::up) due = std::min(due, peer.link->ping_due);
    if (peer.link) due = std::min(due, peer.link->heard + config_.timeout);
    if (!peer.inbound.empty()) due = std::min(due, peer.inbound_heard + config_.timeout);
  }
  return static_cast<int>(std::max(std::chrono::ceil<milliseconds>(due - now), milliseconds{1}).count());
}

void MeshLoop::take_commands() {
  bool closed = false;
  for (Command& command : outbox_->take(closed)) obey(command);
  if (!closed || stopping_) return;
  stopping_ = true;
  stop_deadline_ = Clock::now() + kGoodbye;
}

void MeshLoop::obey(Command& command) {
  const HostId& id = command.peer.host_id;
  if (command.kind == Command::Kind::release) {
    const auto found = retained_.find(id);
    if (found != retained_.end() && --found->second == 0) retained_.erase(found);
    return;
  }
  if (command.kind == Command::Kind::retain) ++retained_[id];
  const auto peer = find_or_add(command.peer);
  if (command.kind == Command::Kind::send) {
    if (peer) {
      (*peer)->pending.push_back(std::move(command.message));
    } else {
      outbox_->message_left(id, command.message.size());
    }
  }
  if (!peer && handlers_.on_peer_down) handlers_.on_peer_down(command.peer, peer.error());
}

void MeshLoop::check_time() {
  const auto now = Clock::now();
  const auto gap = now - last_check_;
  last_check_ = now;
  // While this thread did not run (stopped, starved) nobody could be heard: that time is not the peers' silence.
  const bool slept = gap > 2 * config_.heartbeat;
  std::vector<std::pair<HostId, Status>> lost;
  for (auto& [id, peer] : peers_) {
    if (slept && peer.link) peer.link->heard += std::min<Clock::duration>(gap, now - peer.link->heard);
    if (slept) peer.inbound_heard += std::min<Clock::duration>(gap, now - peer.inbound_heard);
    if (auto reason = overdue(peer, now)) {
      lost.emplace_back(id, std::move(*reason));
    } else if (peer.link && peer.link->state == Link::State::up && now >= peer.link->ping_due) {
      send_ping(peer, now);
    }
  }
  for (const auto& [id, reason] : lost) lose(id, reason);
}

std::optional<Status> MeshLoop::overdue(const Peer& peer, Clock::time_point now) const {
  const std::string limit = std::to_string(config_.timeout.count()) + " ms";
  const std::string who = peer.address.host_id.hex() + " at " + peer.address.endpoint;
  if (peer.link && now - peer.link->heard > config_.timeout) {
    if (peer.link->state != Link::State::dialing) {
      return Status(Code::peer_lost, "peer daemon " + who + " has not answered for " + limit);
    }
    if (!peer.link->last_failure.empty()) {
      return Status(Code::permission,
                    "no link to peer daemon " + who + " within " + limit + ": " + peer.link->last_failure);
    }
    return Status(Code::peer_lost, "peer daemon " + who + " cannot be reached within " + limit +
                                       ": is epd running there, and is its mesh.advertise right?");
  }
  if (!peer.inbound.empty() && now - peer.inbound_heard > config_.timeout) {
    return Status(Code::peer_lost, "peer daemon " + who + " has been silent for " + limit);
  }
  return std::nullopt;
}

bool MeshLoop::needs(const Peer& peer) const {
  return !peer.pending.empty() || (retained_.contains(peer.address.host_id) && !stopping_);
}

void MeshLoop::settle(const HostId& id) {
  Peer* peer = find(id);
  if (peer == nullptr) return;
  if (peer->link) {
    if (peer->link->state == Link::State::up) settle_up(*peer);
  } else if (needs(*peer) || (peer->needs_us && !stopping_)) {
    dial(*peer);
  } else if (peer->inbound.empty()) {
    lose(id, {Code::ok, "both sides had let go of the link"});
  }
}

void MeshLoop::settle_up(Peer& peer) {
  if (needs(peer)) tell_need(peer, true);  // before the messages: who reads one knows that the link is wanted
  pump(peer);
  const bool need = needs(peer);
  tell_need(peer, need);
  if (need || peer.link->told_need || (peer.needs_us && !stopping_)) return;
  const Frame last = frame(stopping_ ? FrameKind::bye : FrameKind::close, peer.address.host_id);
  if (peer.link->send(last) == SendOutcome::sent) peer.link->state = Link::State::closing;
}

void MeshLoop::tell_need(Peer& peer, bool need) {
  if (need == peer.link->told_need) return;
  const Frame news = frame(need ? FrameKind::need : FrameKind::idle, peer.address.host_id);
  if (peer.link->send(news) == SendOutcome::sent) peer.link->told_need = need;
}

bool MeshLoop::finished() const {
  if (!stopping_) return false;
  const auto busy = [](const auto& entry) {
    const Peer& peer = entry.second;
    return peer.link && (peer.link->state != Link::State::dialing || !peer.pending.empty());
  };
  return Clock::now() >= stop_deadline_ || std::none_of(peers_.begin(), peers_.end(), busy);
}

void MeshLoop::publish() {
  std::vector<PeerInfo> infos;
  for (const auto& [id, peer] : peers_) {
    infos.push_back({peer.address, peer.up, peer.link ? peer.link->round_trip_us : 0});
  }
  outbox_->publish(std::move(infos));
}

MeshLoop::Peer* MeshLoop::find(const HostId& id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

Result<MeshLoop::Peer*> MeshLoop::find_or_add(const PeerAddress& address) {
  const HostId& id = address.host_id;
  Peer* known = find(id);
  if (known != nullptr && !known->is_at(address.endpoint)) {
    const std::string there = "peer daemon " + id.hex() + " at " + known->address.endpoint;
    if (still_connected(*known)) {
      return fail(Code::peer_lost, there + " is connected: the one at " + address.endpoint +
                                       " has ended, or needs a host_id_file of its own");
    }
    lose(id, {Code::peer_lost, there + " is not connected and gives way to the one at " + address.endpoint});
    known = nullptr;
  }
  if (known != nullptr) return known;
  if (address.endpoint.empty()) {
    return fail(Code::unavailable, "no link to peer daemon " + id.hex() + " and no endpoint to dial");
  }
  if (peers_.size() >= config_.max_peers) {
    return fail(Code::limit_exceeded, "the mesh has " + std::to_string(peers_.size()) +
                                          " peers, its limit: " + address.endpoint + " is not added");
  }
  Peer& peer = peers_[id];
  peer.address = address;
  changed_ = true;
  return &peer;
}

// Asked of the sockets: the end of a connection may wait there unread.
bool MeshLoop::still_connected(Peer& peer) {
  const bool dialled = peer.link && peer.link->state != Link::State::dialing;
  if (dialled && !peer.link->connected()) return false;
  // Said twice a welcome changes nothing, and a route whose connection has ended does not take it.
  if (!peer.inbound.empty()) return welcome(peer.inbound, peer.address.host_id) != SendOutcome::gone;
  return dialled;
}

void MeshLoop::mark_up(Peer& peer) {
  changed_ = true;
  if (std::exchange(peer.up, true)) return;
  publish();  // who is told may look
  if (handlers_.on_peer_up) handlers_.on_peer_up(peer.address);
}

void MeshLoop::lose(const HostId& id, const Status& reason) {
  const auto entry = peers_.extract(id);
  if (entry.empty()) return;
  if (!entry.mapped().inbound.empty()) routes_.erase(entry.mapped().inbound);
  publish();  // who is told may look
  for (const zmq::message_t& message : entry.mapped().pending) outbox_->message_left(entry.key(), message.size());
  if (handlers_.on_peer_down && !stopping_) handlers_.on_peer_down(entry.mapped().address, reason);
}

Frame MeshLoop::frame(FrameKind kind, const HostId& to) const {
  Frame result;
  result.kind = kind;
  result.from = config_.host_id;
  result.to = to;
  return result;
}

}  // namespace railhead::mesh
