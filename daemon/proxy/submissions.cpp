#include "daemon/proxy/submissions.hpp"

#include <string>
#include <string_view>

namespace railhead::daemon::rail {
namespace {

// Of one rank per pass, so that a busy rank does not delay the others or the arrivals.
constexpr int kRequestsPerPass = 16;
constexpr std::uint64_t kLow24 = 0xffffff;

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

void cut_off(Group& group, const Rail& rail, const std::string& what) {
  group.fail(group.domain(), rail.rank,
             {Code::protocol, "rank " + number(rail.rank) + " was cut off: it submitted " + what});
}

std::string of_ring(std::string_view direction, const Rail& rail, std::uint32_t index) {
  const auto& home = rail.rings.as_home();
  const auto& forwarder = rail.rings.as_forwarder();
  const bool tx = direction == "tx";
  const auto first = static_cast<std::uint32_t>(tx ? home.size() : forwarder.size());
  const ipc::RingEnd& end =
      (index < first) == tx ? home[tx ? index : index - first] : forwarder[tx ? index - first : index];
  return std::string(direction) + " ring " + number(index) + " (" + (index < first ? "dispatch" : "combine") +
         ", home " + number(end.home) + ", channel " + number(end.channel) + ")";
}

}  // namespace

bool Submissions::step(Group& group) {
  bool any = false;
  for (Rail& rail : group.rails) {
    if (group.stopped) break;
    if (step(group, rail)) any = true;
  }
  return any;
}

bool Submissions::step(Group& group, Rail& rail) {
  bool any = false;
  for (int i = 0; i < kRequestsPerPass && !group.stopped; ++i) {
    if (!rail.held && rail.may_take > 0) {
      rail.held = rail.words.next();
      if (rail.held) --rail.may_take;
    }
    if (!rail.held || handle(group, rail, *rail.held) == Outcome::hold) break;
    rail.held.reset();
    any = true;
  }
  return any;
}

Submissions::Outcome Submissions::handle(Group& group, Rail& rail, const ipc::RailRequest& request) {
  switch (request.verb) {
    case ipc::RailVerb::chunk: return chunk(group, rail, request);
    case ipc::RailVerb::credit: return credit(group, rail, request);
    case ipc::RailVerb::header: return header(group, rail, request);
  }
  cut_off(group, rail, "a request of kind " + number(static_cast<std::uint8_t>(request.verb)) + ", 1 to 3 are known");
  return Outcome::taken;
}

Submissions::Outcome Submissions::chunk(Group& group, Rail& rail, const ipc::RailRequest& request) {
  if (request.index >= rail.tx.size()) {
    cut_off(group, rail, "a chunk for tx ring " + number(request.index) + ", it has " + number(rail.tx.size()));
    return Outcome::taken;
  }
  TxRing& ring = rail.tx[request.index];
  const std::string_view tx = "tx";
  const std::uint32_t slots = group.shape().params().ring_slots;
  if (request.low24 != (ring.submitted & kLow24)) {
    cut_off(group, rail,
            "slot " + number(request.low24) + " of " + of_ring(tx, rail, ring.index) + ", slot " +
                number(ring.submitted & kLow24) + " is next");
  } else if (ring.submitted >= ring.granted + slots) {
    cut_off(group, rail,
            "slot " + number(ring.submitted) + " of " + of_ring(tx, rail, ring.index) + " without a credit: " +
                number(ring.granted) + " were granted, the ring has " + number(slots) + " slots");
  } else if (request.value == 0 || request.value > rail.layout.slot_bytes()) {
    cut_off(group, rail,
            "a chunk of " + number(request.value) + " bytes in " + of_ring(tx, rail, ring.index) + ", 1 to " +
                number(rail.layout.slot_bytes()) + " fit");
  } else if (ring.path->state == Path::State::opened || ring.path->state == Path::State::offered) {
    cut_off(group, rail, "a chunk for domain " + number(ring.path->domain) + " before the path to it was up");
  } else {
    poster_.chunk(ring, ring.submitted++, static_cast<std::uint32_t>(request.value));
  }
  return Outcome::taken;
}

Submissions::Outcome Submissions::credit(Group& group, Rail& rail, const ipc::RailRequest& request) {
  if (request.index >= rail.rx.size()) {
    cut_off(group, rail, "a credit for rx ring " + number(request.index) + ", it has " + number(rail.rx.size()));
    return Outcome::taken;
  }
  RxRing& ring = rail.rx[request.index];
  if (request.value <= ring.consumed || request.value > ring.window.prefix()) {
    cut_off(group, rail,
            "a credit of " + number(request.value) + " slots of " + of_ring("rx", rail, ring.index) + ": " +
                number(ring.consumed) + " were credited before, " + number(ring.window.prefix()) + " have arrived");
    return Outcome::taken;
  }
  ring.consumed = request.value;
  poster_.credit(ring);
  return Outcome::taken;
}

Submissions::Outcome Submissions::header(Group& group, Rail& rail, const ipc::RailRequest& request) {
  if (request.index >= rail.headers.size()) {
    cut_off(group, rail,
            "a header for other domain " + number(request.index) + ", there are " + number(rail.headers.size()));
    return Outcome::taken;
  }
  HeaderTx& ring = rail.headers[request.index];
  const std::uint32_t words = group.shape().slice_words(ring.path->domain);
  if (request.low24 != ((ring.submitted + 1) & kLow24)) {
    cut_off(group, rail,
            "the header of operation " + number(request.low24) + " for domain " + number(ring.path->domain) +
                ", operation " + number((ring.submitted + 1) & kLow24) + " is next");
  } else if (request.value != words) {
    cut_off(group, rail,
            "a header with a slice of " + number(request.value) + " words for domain " + number(ring.path->domain) +
                ", " + number(words) + " are due");
  } else if (ring.path->state == Path::State::opened || ring.path->state == Path::State::offered) {
    cut_off(group, rail, "a header for domain " + number(ring.path->domain) + " before the path to it was up");
  } else if (ring.submitted - ring.reported >= ipc::header_slots(group.shape().params().depth)) {
    // Bounds what a rank can make us queue; a rank that keeps to the window is never held for long.
    return Outcome::hold;
  } else {
    poster_.header(ring, ++ring.submitted,
                   static_cast<std::uint32_t>(sizeof(ipc::OpHeader) + words * sizeof(std::uint32_t)));
  }
  return Outcome::taken;
}

}  // namespace railhead::daemon::rail
