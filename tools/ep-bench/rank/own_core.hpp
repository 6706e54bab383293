// Binds the calling thread to one of its cores for a while.
#pragma once

#include <sched.h>

#include <cstdint>

namespace railhead::bench {

class OwnCore {
 public:
  // The n-th of the thread's cores, if it has as many; else nothing changes.
  explicit OwnCore(std::uint32_t n) {
    if (sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &before_) || n-- != 0) continue;
      cpu_set_t own;
      CPU_ZERO(&own);
      CPU_SET(core, &own);
      bound_ = sched_setaffinity(0, sizeof(own), &own) == 0;
      return;
    }
  }
  ~OwnCore() {
    if (bound_) static_cast<void>(sched_setaffinity(0, sizeof(before_), &before_));
  }
  OwnCore(const OwnCore&) = delete;
  OwnCore& operator=(const OwnCore&) = delete;

 private:
  cpu_set_t before_{};
  bool bound_ = false;
};

}  // namespace railhead::bench
