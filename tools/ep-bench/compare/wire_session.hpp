// A session and a group membership with no more than the rail: what `wire-rank` needs of the control protocol.
#pragma once

#include <memory>

#include "ipc/layout/group_segment.hpp"
#include "ipc/layout/rail_words.hpp"
#include "ipc/layout/shape.hpp"
#include "railhead/railhead.h"

namespace railhead::bench {

// One thread, which also owns the session's liveness word. Every call ends within a deadline of its own.
class WireSession {
 public:
  static Result<std::unique_ptr<WireSession>> open(const std::string& socket);
  virtual ~WireSession() = default;

  virtual Result<rh_unique_id> unique_id() = 0;
  // Joins, attaches a rail segment whose slots are filled with `fill`, maps the words.
  virtual Status join(const rh_unique_id& id, std::uint32_t rank, const ipc::GroupParams& params, std::byte fill) = 0;

  // After join().
  [[nodiscard]] virtual const ipc::GroupShape& shape() const = 0;
  [[nodiscard]] virtual ipc::RailWordsClient& rail() = 0;
  [[nodiscard]] virtual ipc::WakeWord& wake() = 0;
  virtual void ring_bell() = 0;  // if the proxy sleeps
};

}  // namespace railhead::bench
