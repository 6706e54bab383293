// What peers' writes bring: slots, headers, credits. Nothing of it is believed before it is checked. One thread.
#pragma once

#include "daemon/proxy/group.hpp"
#include "daemon/proxy/peers.hpp"

namespace railhead::daemon::rail {

class Arrivals {
 public:
  // A write with this immediate is in place.
  void immediate(Peer& peer, std::uint32_t word);
  // Puts headers on the board whose window has opened. True if there were any.
  bool step(Group& group);

 private:
  void credit(Peer& peer, std::uint16_t number);
  void slot(RxRing& ring);
  void header(HeaderRx& ring);
  // Publishes what can be published of this ring; false while something must wait for its window.
  bool publish(HeaderRx& ring);
  Result<void> copy_in(const HeaderRx& ring);

  // The header that is being checked, out of reach of the network.
  ipc::OpHeader header_{};
  std::vector<std::uint32_t> slice_;
};

}  // namespace railhead::daemon::rail
