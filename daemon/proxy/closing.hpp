// The end of a group: nothing is withdrawn that a peer may still write to. One thread.
#pragma once

#include "daemon/proxy/enrolment.hpp"
#include "daemon/proxy/group.hpp"
#include "daemon/proxy/peers.hpp"

namespace railhead::daemon::rail {

class Closing {
 public:
  Closing(fabric::Fabric& fabric, Peers& peers) : fabric_(fabric), peers_(peers) {}

  void begin(Group& group, CloseMode mode);
  // True when the group's registrations are gone; it was reported and can be dropped.
  bool step(Group& group);

 private:
  void report_posted(Path& path);
  void give_up(Path& path);

  fabric::Fabric& fabric_;
  Peers& peers_;
};

// Whether everything has arrived that the peer said it posted, or nothing can arrive any more.
bool settled(const Path& path);

}  // namespace railhead::daemon::rail
