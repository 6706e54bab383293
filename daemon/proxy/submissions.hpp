// Takes what local ranks ask for, checks every field against the proxy's own counters and has it posted. A rank that
// asks for what it may not is cut off with its group; others are not touched. One thread.
#pragma once

#include "daemon/proxy/group.hpp"
#include "daemon/proxy/poster.hpp"

namespace railhead::daemon::rail {

class Submissions {
 public:
  explicit Submissions(Poster& poster) : poster_(poster) {}

  // A bounded number of requests of each rank of the group. True if there were any.
  bool step(Group& group);

 private:
  // What became of a request. `hold`: it is right, but has to wait.
  enum class Outcome : std::uint8_t { taken, hold };

  bool step(Group& group, Rail& rail);
  Outcome handle(Group& group, Rail& rail, const ipc::RailRequest& request);
  Outcome chunk(Group& group, Rail& rail, const ipc::RailRequest& request);
  Outcome credit(Group& group, Rail& rail, const ipc::RailRequest& request);
  Outcome header(Group& group, Rail& rail, const ipc::RailRequest& request);

  Poster& poster_;
};

}  // namespace railhead::daemon::rail
