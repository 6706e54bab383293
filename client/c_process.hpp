// What the files of the C interface share: the process's objects by name, and how a status becomes a code and a
// sentence.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>

#include "client/fork_mark.hpp"
#include "client/group.hpp"
#include "client/registry.hpp"
#include "client/session.hpp"
#include "railhead/railhead.h"

namespace railhead::client {

struct SessionEntry {
  std::shared_ptr<Session> session;
};
struct GroupEntry {
  std::shared_ptr<Group> group;
  std::shared_ptr<Session> session;
};
struct HandleEntry {
  std::shared_ptr<Handle> handle;
  std::shared_ptr<Group> group;
};
struct EventEntry {
  std::shared_ptr<Group> group;
  std::shared_ptr<Op> op;
  DispatchOp* dispatch = nullptr;  // the operation, when it is one
  rh_dispatch_result* result = nullptr;
};

// One set per process: C names have no owner to keep them in.
struct Process {
  ForkMark mark;  // set before any object exists
  Registry<rh_session, SessionEntry> sessions;
  Registry<rh_group, GroupEntry> groups;
  Registry<rh_handle, HandleEntry> handles;
  Registry<rh_event, EventEntry> events;
};

Process& process();

// Of the calling thread.
std::string& last_error();

// Remembers the sentence; the code to return, which counts more: lack of memory costs the sentence alone.
rh_status report(const Status& status) noexcept;
rh_status report(Code code, const char* text) noexcept;

template <class T>
rh_status report(const Result<T>& result) {
  return result ? RH_OK : report(result.error());
}

// Every entry point: no exception crosses the C boundary, and nothing happens in a forked child (before any lock: the
// child may have copied one that is held).
template <class F>
rh_status guarded(F&& f) noexcept {
  try {
    if (process().mark.in_child()) {
      return report(Code::forked,
                    "this process is a child of fork(): the session belongs to its parent, open one here after exec");
    }
    return f();
  } catch (const std::bad_alloc&) {
    return report(Code::out_of_memory, "no memory for the library's own bookkeeping");
  } catch (const std::system_error& e) {  // a thread or a lock that the system does not give
    return report(Code::system, e.what());
  } catch (const std::exception& e) {
    return report(Code::internal, e.what());
  }
}

// The name is not in use.
rh_status unknown(const char* what);
std::shared_ptr<Group> find_group(const rh_group* name);

}  // namespace railhead::client
