// The outstanding writes of one peer: what a completion's context points to.
#pragma once

#include <rdma/fi_rma.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "daemon/fabric/event_queue.hpp"
#include "daemon/fabric/ofi_domain.hpp"

namespace railhead::fabric {

class OfiWrites;

struct OfiWrite {
  fi_context2 provider{};  // first: providers that ask for a context scribble here
  OfiWrites* owner = nullptr;
  std::uint64_t context = 0;
  std::uint64_t order = 0;
  RegionId region{};
  bool live = false;
};

class OfiWrites {
 public:
  OfiWrites(OfiDomain& domain, PeerId peer, std::size_t limit) : domain_(domain), peer_(peer), limit_(limit) {}
  OfiWrites(const OfiWrites&) = delete;
  OfiWrites& operator=(const OfiWrites&) = delete;

  PeerId peer() const { return peer_; }
  std::size_t outstanding() const { return outstanding_; }

  // Posts one write with its remote CQ data. again: the queue here or in the provider is full.
  Result<PostState> post(fid_ep* endpoint, fi_addr_t target, const Write& write, std::uint64_t data);

  void done(OfiWrite& write, EventQueue& events) {
    const std::uint64_t context = release(write);
    events.write_done(peer_, context);
  }
  void failed(OfiWrite& write, Status status, EventQueue& events) {
    const std::uint64_t context = release(write);
    events.write_failed(peer_, context, std::move(status));
  }
  // Reports every outstanding write as failed, in the order of posting. The provider must have let go of them.
  void fail_all(const Status& status, EventQueue& events);

 private:
  OfiWrite& claim(const Write& write);
  std::uint64_t release(OfiWrite& write);

  OfiDomain& domain_;
  PeerId peer_;
  std::size_t limit_;
  std::size_t outstanding_ = 0;
  std::uint64_t next_order_ = 0;
  std::deque<OfiWrite> slots_;  // grows to the deepest queue seen; a deque keeps addresses
  std::vector<OfiWrite*> free_;
};

}  // namespace railhead::fabric
