// Posts writes, keeps those that the fabric has no room for, and follows each to its end. One thread.
#pragma once

#include "daemon/proxy/group.hpp"
#include "daemon/proxy/peers.hpp"

namespace railhead::daemon::rail {

class Poster {
 public:
  explicit Poster(fabric::Fabric& fabric) : fabric_(fabric) {}

  // Each write to the slot of the peer that belongs to it; the caller has validated everything. Nothing is posted on a
  // path that is not connected, and an error fails the path's group.
  void chunk(TxRing& ring, std::uint64_t sequence, std::uint32_t bytes);
  void header(HeaderTx& ring, std::uint64_t operation, std::uint32_t bytes);
  // Tells the peer what was consumed of the ring, unless it knows or is being told: then again when that is done.
  void credit(RxRing& ring);

  // Posts what had to wait. True if anything could be.
  bool retry(Peer& peer);
  // Takes back what still waits for a group.
  [[nodiscard]] static bool has_queued(const Group& group);
  static void drop_queued(Group& group);

  void done(std::uint64_t context);
  void failed(std::uint64_t context, const Status& status);

 private:
  void send(Ring& ring, fabric::Write write);
  // False when the fabric has no room.
  bool post(const fabric::Write& write);

  fabric::Fabric& fabric_;
};

}  // namespace railhead::daemon::rail
