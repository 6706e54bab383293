// Status codes and sentences: the one error vocabulary of library, daemon and tools.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace railhead {

// Values are part of the C ABI (rh_status in railhead.h, checked there by static_assert): append only, never renumber.
enum class Code : int {
  ok = 0,
  invalid_argument = 1,   // a value is out of range; the call did not happen, the corrected call works
  invalid_usage = 2,      // right values at the wrong time: wrong state, released handle, handle of another group
  mismatch = 3,           // ranks disagree: parameters at group creation, or different operations under one number
  out_of_memory = 4,      // the message holds needed and free bytes
  limit_exceeded = 5,     // a quota or cap; the message holds value and limit
  timeout = 6,            // a deadline passed; the message names who was waited for
  aborted = 7,            // the group ended on request, by policy, or by a rank's error
  rank_lost = 8,          // a member's process ended or was evicted
  daemon_lost = 9,        // this host's daemon is gone; re-open the session
  peer_lost = 10,         // another host's daemon or the path to it is gone
  unavailable = 11,       // no daemon, no provider, no device
  permission = 12,        // refused by credentials
  version_mismatch = 13,  // the two sides speak different protocol versions
  unsupported = 14,       // a combination that is documented as not supported
  protocol = 15,          // the other side sent what it must not send
  system = 16,            // a system call failed; the message holds errno
  internal = 17,          // a broken invariant of our own
  forked = 18,            // used in a child of fork(); open a session of your own
  in_progress = 19,       // an event that is not complete yet
};

// The short stable name of a code: "invalid_argument".
std::string_view code_name(Code code) noexcept;

// A code and a full sentence: what, where (group, op, phase, rank, peer), value and limit, what to do.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] bool ok() const noexcept { return code_ == Code::ok; }
  [[nodiscard]] Code code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  // "name: sentence", for logs and terminals.
  [[nodiscard]] std::string to_string() const;

 private:
  Code code_ = Code::ok;
  std::string message_;
};

template <class T>
using Result = tl::expected<T, Status>;

// return fail(Code::timeout, "...") from any function that returns a Result.
inline tl::unexpected<Status> fail(Code code, std::string message) {
  return tl::unexpected<Status>(Status(code, std::move(message)));
}
inline tl::unexpected<Status> fail(Status status) {
  return tl::unexpected<Status>(std::move(status));
}

// A failed system call: "what: Permission denied (errno 13)".
Status system_status(std::string_view what, int error_number);

}  // namespace railhead
