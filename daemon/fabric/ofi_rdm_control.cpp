// How RDM peers meet and part.
#include <utility>

#include "daemon/fabric/checks.hpp"
#include "daemon/fabric/ofi_rdm.hpp"

namespace railhead::fabric {
namespace {

// How long a provider may keep the writes of a peer that has ended before they are reported for it.
constexpr std::chrono::seconds kEndGrace{2};

}  // namespace

void OfiRdmFabric::call(PeerId id, Peer& peer) {
  RdmMessage hello;
  hello.kind = RdmMessage::Kind::hello;
  hello.token = peer.token;
  hello.tag = peer.my_tag;
  hello.name_bytes = static_cast<std::uint32_t>(name_.size());
  std::copy(name_.begin(), name_.end(), hello.name.begin());
  const auto state = mailbox_->send(peer.target, hello, id);
  if (!state) {
    peer.why = state.error();  // said if the deadline comes before a better answer
  } else if (*state == PostState::posted) {
    peer.stage = Stage::called;
  }
}

void OfiRdmFabric::handle_message(const RdmMessage& message) {
  if (message.kind == RdmMessage::Kind::hello) return handle_hello(message);
  for (auto& [id, peer] : peers_) {
    if (peer->token != message.token) continue;
    if (message.kind == RdmMessage::Kind::welcome && peer->stage == Stage::called) {
      peer->their_tag = message.tag;
      set_up(id, *peer);
    } else if (message.kind == RdmMessage::Kind::bye && peer->stage == Stage::up && message.tag == peer->my_tag) {
      begin_end(*peer, {Code::peer_lost, name_of(id) + " closed the connection (ECONNRESET)"}, true);
    }
    return;
  }
}

void OfiRdmFabric::handle_hello(const RdmMessage& message) {
  const auto entry = expected_.take(message.token);
  if (!entry) {
    ++refused_;  // unanswered: a stranger learns nothing, and its own deadline ends it
    return;
  }
  const std::vector<std::byte> name(message.name.begin(), message.name.begin() + message.name_bytes);
  const auto peer = add_peer(entry->peer, name, message.token, entry->deadline);
  if (!peer) return events_.peer_down(entry->peer, entry->token, peer.error());
  (*peer)->their_tag = message.tag;
}

// A peer with a tag from the other side only lacks the welcome that tells ours.
void OfiRdmFabric::drive_peers() {
  for (const auto& entry : expected_.empty() ? std::vector<Expectations::Entry>{}
                                             : expected_.take_expired(std::chrono::steady_clock::now())) {
    events_.peer_down(entry.peer, entry.token, not_come(entry.peer));
  }
  if (unsettled_ == 0) return;
  const auto now = std::chrono::steady_clock::now();
  std::vector<PeerId> ended;
  for (auto& [id, peer] : peers_) {
    if (peer->stage == Stage::up) continue;
    if (peer->stage == Stage::ending) {
      if (peer->writes.outstanding() == 0 || now > peer->deadline) ended.push_back(id);
    } else if (now > peer->deadline) {
      const std::string last = peer->why.ok() ? "" : "; last error: " + peer->why.message();
      begin_end(*peer,
                {Code::timeout, name_of(id) +
                                    " did not answer before the deadline of the connection: it is "
                                    "not there, or it does not expect this token" +
                                    last},
                true);
      ended.push_back(id);
    } else if (peer->their_tag != 0) {
      const RdmMessage welcome{.kind = RdmMessage::Kind::welcome, .token = peer->token, .tag = peer->my_tag};
      const auto state = mailbox_->send(peer->target, welcome, id);
      if (state && *state == PostState::posted) set_up(id, *peer);
    } else if (peer->stage == Stage::calling) {
      call(id, *peer);
    }
  }
  for (const PeerId id : ended) finish_end(id);
}

void OfiRdmFabric::set_up(PeerId id, Peer& peer) {
  peer.stage = Stage::up;
  peer.why = {};
  --unsettled_;
  events_.peer_up(id, peer.token);
  for (const std::uint32_t value : peer.early) events_.immediate(id, value);
  peer.early.clear();
}

void OfiRdmFabric::close_peer(PeerId id) {
  expected_.cancel(id);
  if (Peer* peer = find(id)) {
    if (peer->stage == Stage::up) {
      const RdmMessage bye{.kind = RdmMessage::Kind::bye, .token = peer->token, .tag = peer->their_tag};
      // A courtesy: the far side learns a loss by itself when this one gets lost.
      [[maybe_unused]] const auto state = mailbox_->send(peer->target, bye, id);
    }
    begin_end(*peer, closed_here(id), false);
  }
  events_.forget_peer(id);
}

void OfiRdmFabric::begin_end(Peer& peer, Status why, bool report_down) {
  if (peer.stage == Stage::ending) {
    peer.report_down = peer.report_down && report_down;
    return;
  }
  if (peer.stage == Stage::up) ++unsettled_;
  peer.stage = Stage::ending;
  peer.deadline = std::chrono::steady_clock::now() + kEndGrace;
  peer.why = std::move(why);
  peer.report_down = report_down;
  tags_.erase(peer.my_tag);
}

void OfiRdmFabric::finish_end(PeerId id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  std::unique_ptr<Peer> peer = std::move(found->second);
  peers_.erase(found);
  --unsettled_;
  fi_av_remove(addresses_.get(), &peer->target, 1, 0);
  const bool all_reported = peer->writes.outstanding() == 0;
  peer->writes.fail_all(peer->why, events_);
  if (peer->report_down) events_.peer_down(id, peer->token, peer->why);
  if (!all_reported) abandoned_.push_back(std::move(peer));
}

}  // namespace railhead::fabric
