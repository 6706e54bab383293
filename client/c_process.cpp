#include "client/c_process.hpp"

#include <utility>

namespace railhead::client {

static_assert(RH_OK == static_cast<int>(Code::ok) && RH_INVALID_ARGUMENT == static_cast<int>(Code::invalid_argument));
static_assert(RH_INVALID_USAGE == static_cast<int>(Code::invalid_usage) &&
              RH_MISMATCH == static_cast<int>(Code::mismatch));
static_assert(RH_OUT_OF_MEMORY == static_cast<int>(Code::out_of_memory) &&
              RH_LIMIT_EXCEEDED == static_cast<int>(Code::limit_exceeded));
static_assert(RH_TIMEOUT == static_cast<int>(Code::timeout) && RH_ABORTED == static_cast<int>(Code::aborted));
static_assert(RH_RANK_LOST == static_cast<int>(Code::rank_lost) &&
              RH_DAEMON_LOST == static_cast<int>(Code::daemon_lost));
static_assert(RH_PEER_LOST == static_cast<int>(Code::peer_lost) &&
              RH_UNAVAILABLE == static_cast<int>(Code::unavailable));
static_assert(RH_PERMISSION == static_cast<int>(Code::permission) &&
              RH_VERSION_MISMATCH == static_cast<int>(Code::version_mismatch));
static_assert(RH_UNSUPPORTED == static_cast<int>(Code::unsupported) && RH_PROTOCOL == static_cast<int>(Code::protocol));
static_assert(RH_SYSTEM == static_cast<int>(Code::system) && RH_INTERNAL == static_cast<int>(Code::internal));
static_assert(RH_FORKED == static_cast<int>(Code::forked) && RH_IN_PROGRESS == static_cast<int>(Code::in_progress));

Process& process() {
  // Never destroyed: threads of ours may outlive static destruction when the application calls exit().
  static Process* const instance = new Process;
  return *instance;
}

std::string& last_error() {
  thread_local std::string text;
  return text;
}

rh_status report(const Status& status) noexcept {
  return status.ok() ? RH_OK : report(status.code(), status.message().c_str());
}

rh_status report(Code code, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (const std::bad_alloc&) {
    last_error() = "(out of memory)";  // short enough to need none
  }
  return static_cast<rh_status>(code);
}

rh_status unknown(const char* what) {
  return report(
      Status(Code::invalid_usage, std::string(what) + " is NULL, was closed or released, or is not one of ours"));
}

std::shared_ptr<Group> find_group(const rh_group* name) {
  auto entry = process().groups.find(name);
  if (entry == nullptr) return nullptr;
  Group* const group = entry->group.get();
  return {std::move(entry), group};  // one count for both: two would be an atomic operation more, twice a call
}

}  // namespace railhead::client
