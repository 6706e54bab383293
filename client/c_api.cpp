// The C interface: names to objects, arguments to requests, statuses to codes and sentences.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "client/arguments.hpp"
#include "client/daemon_choice.hpp"
#include "client/group.hpp"
#include "client/registry.hpp"
#include "client/session.hpp"
#include "ipc/version.hpp"
#include "railhead/railhead.h"

namespace railhead::client {
namespace {

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
  std::shared_ptr<Op> op;
  std::shared_ptr<DispatchOp> dispatch;  // when the operation is one
  std::shared_ptr<Group> group;
  rh_dispatch_result* result = nullptr;
};

// One set per process: C names have no owner to keep them in.
struct Process {
  std::atomic<pid_t> pid{0};
  Registry<rh_session, SessionEntry> sessions;
  Registry<rh_group, GroupEntry> groups;
  Registry<rh_handle, HandleEntry> handles;
  Registry<rh_event, EventEntry> events;
};

Process& process() {
  // Never destroyed: threads of ours may outlive static destruction when the application calls exit().
  static Process* const instance = new Process;
  return *instance;
}

std::string& last_error() {
  thread_local std::string text;
  return text;
}

rh_status report(const Status& status) {
  if (status.ok()) return RH_OK;
  last_error() = status.message();
  return static_cast<rh_status>(status.code());
}

rh_status report(Code code, const char* text) {
  return report(Status(code, text));
}

template <class T>
rh_status report(const Result<T>& result) {
  return result ? RH_OK : report(result.error());
}

// Every entry point: no exception crosses the C boundary, and nothing happens in a forked child (before any lock: the
// child may have copied one that is held).
template <class F>
rh_status guarded(F&& f) noexcept {
  try {
    // relaxed: written once before any object exists.
    const pid_t owner = process().pid.load(std::memory_order_relaxed);
    if (owner != 0 && owner != ::getpid()) {
      return report(Code::forked,
                    "this process is a child of fork(): the session belongs to its parent, open one here after exec");
    }
    return f();
  } catch (const std::bad_alloc&) {
    return report(Code::out_of_memory, "no memory for the library's own bookkeeping");
  } catch (const std::exception& e) {
    return report(Code::internal, e.what());
  }
}

rh_status unknown(const char* what) {
  return report(
      Status(Code::invalid_usage, std::string(what) + " is NULL, was closed or released, or is not one of ours"));
}

std::shared_ptr<Group> find_group(const rh_group* name) {
  const auto entry = process().groups.find(name);
  return entry == nullptr ? nullptr : entry->group;
}

// The handle if it is alive and of this group; else why not.
Result<std::shared_ptr<Handle>> find_handle(const rh_handle* name, const std::shared_ptr<Group>& group) {
  const auto entry = process().handles.find(name);
  if (entry == nullptr) {
    return fail(Code::invalid_usage, "the handle is NULL, was released, or is not one of ours");
  }
  if (entry->group != group) return fail(Code::invalid_usage, "the handle belongs to another group");
  return entry->handle;
}

// Results of a finished (or too short) dispatch; the code to return for it.
Status settle(const std::shared_ptr<Group>& group, const EventEntry& entry) {
  if (entry.op->concluded()) {
    if (entry.op->result().ok() && entry.dispatch != nullptr && entry.result != nullptr) {
      group->fill(*entry.dispatch, *entry.result);
    }
    return entry.op->result();
  }
  if (entry.dispatch != nullptr && entry.dispatch->too_small()) {
    return {Code::limit_exceeded, "out holds " + std::to_string(entry.dispatch->out_rows()) +
                                      " rows, this rank receives " + std::to_string(entry.dispatch->output_rows()) +
                                      "; finish with rh_dispatch_run and a larger output"};
  }
  return group->engine().status();
}

bool settled(const EventEntry& entry) {
  return entry.op->concluded() || (entry.dispatch != nullptr && entry.dispatch->too_small());
}

// Waits for a blocking call, or makes an event of it.
rh_status conclude(EventEntry entry, rh_event** event) {
  const std::shared_ptr<Group> group = entry.group;
  if (event != nullptr) {
    *event = process().events.add(std::make_shared<EventEntry>(std::move(entry)));
    group->engine().detach();
    return RH_OK;
  }
  // The engine ends an operation at its own deadline, on all ranks.
  group->engine().wait(ipc::Deadline::never(), [&entry] { return settled(entry); });
  return report(group->engine().locked([&] { return settle(group, entry); }));
}

}  // namespace
}  // namespace railhead::client

using namespace railhead::client;  // NOLINT(google-build-using-namespace): the C functions below are this file's
                                   // purpose
using railhead::Code;
using railhead::Status;

const char* rh_status_name(rh_status status) {
  return railhead::code_name(static_cast<Code>(status)).data();
}
const char* rh_last_error(void) {
  return last_error().c_str();
}
const char* rh_version(void) {
  return railhead::ipc::build_string().data();
}

rh_status rh_session_open(const rh_session_config* config, rh_session** session) {
  return guarded([&]() -> rh_status {
    if (session == nullptr) return report(Code::invalid_argument, "session is NULL");
    *session = nullptr;
    SessionConfig own;
    if (config != nullptr) {
      auto read = read_struct(config, "rh_session_config");
      if (!read) return report(read);
      if (read->daemon != nullptr) own.daemon = read->daemon;
      if (read->timeout_ms != 0) own.timeout = read->timeout_ms;
      own.job = job_label(read->job);
    } else {
      own.job = job_label(nullptr);
    }
    auto opened = Session::open(own);
    if (!opened) return report(opened);
    process().pid.store(::getpid(), std::memory_order_relaxed);  // relaxed: see guarded()
    *session = process().sessions.add(std::make_shared<SessionEntry>(SessionEntry{std::move(*opened)}));
    return RH_OK;
  });
}

rh_status rh_session_close(rh_session* session) {
  return guarded([&]() -> rh_status {
    if (session == nullptr) return RH_OK;
    const auto entry = process().sessions.take(session);
    if (entry == nullptr) return unknown("the session");
    std::vector<std::shared_ptr<Group>> ended;
    process().groups.take_if([&](const GroupEntry& g) {
      if (g.session != entry->session) return false;
      ended.push_back(g.group);
      return true;
    });
    for (const auto& group : ended) {
      process().events.take_if([&](const EventEntry& e) { return e.group == group; });
      process().handles.take_if([&](const HandleEntry& h) { return h.group == group; });
      group->close();
    }
    return RH_OK;
  });
}

rh_status rh_unique_id_create(rh_session* session, rh_unique_id* id) {
  return guarded([&]() -> rh_status {
    const auto entry = process().sessions.find(session);
    if (entry == nullptr) return unknown("the session");
    if (id == nullptr) return report(Code::invalid_argument, "id is NULL");
    auto made = entry->session->link().unique_id();
    if (!made) return report(made);
    if (made->size() > sizeof(id->bytes))
      return report(Code::protocol, "the daemon's unique id is longer than 256 bytes");
    std::memset(id->bytes, 0, sizeof(id->bytes));
    std::memcpy(id->bytes, made->data(), made->size());
    return RH_OK;
  });
}

rh_status rh_group_create(rh_session* session, const rh_unique_id* id, const rh_group_config* config,
                          rh_group** group) {
  return guarded([&]() -> rh_status {
    const auto entry = process().sessions.find(session);
    if (entry == nullptr) return unknown("the session");
    if (id == nullptr || group == nullptr)
      return report(Code::invalid_argument, id == nullptr ? "id is NULL" : "group is NULL");
    *group = nullptr;
    auto read = read_struct(config, "rh_group_config");
    if (!read) return report(read);
    auto made = Group::create(entry->session, *id, *read);
    if (!made) return report(made);
    *group = process().groups.add(std::make_shared<GroupEntry>(GroupEntry{std::move(*made), entry->session}));
    return RH_OK;
  });
}

rh_status rh_group_query(rh_group* group, rh_group_info* info) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    if (info == nullptr) return report(Code::invalid_argument, "info is NULL");
    found->describe(*info);
    return RH_OK;
  });
}

rh_status rh_group_status(rh_group* group) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    return found == nullptr ? unknown("the group") : report(found->engine().status());
  });
}

rh_status rh_group_abort(rh_group* group, const char* reason) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    found->abort(reason == nullptr ? "no reason given" : reason);
    return RH_OK;
  });
}

rh_status rh_group_close(rh_group* group) {
  return guarded([&]() -> rh_status {
    if (group == nullptr) return RH_OK;
    const auto entry = process().groups.take(group);
    if (entry == nullptr) return unknown("the group");
    process().events.take_if([&](const EventEntry& e) { return e.group == entry->group; });
    process().handles.take_if([&](const HandleEntry& h) { return h.group == entry->group; });
    entry->group->close();
    return RH_OK;
  });
}

rh_status rh_alloc(rh_group* group, rh_arena arena, size_t bytes, void** memory) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    if (memory == nullptr) return report(Code::invalid_argument, "memory is NULL");
    *memory = nullptr;
    if (arena != RH_ARENA_RECEIVE && arena != RH_ARENA_COMBINE)
      return report(Code::invalid_argument, "arena is neither RH_ARENA_RECEIVE nor RH_ARENA_COMBINE");
    // The memory of an ended group is never handed out again: a peer that sleeps may still write there when it wakes.
    if (const Status ended = found->engine().status(); !ended.ok()) return report(ended);
    auto block = found->context().arena->allocate(
        arena == RH_ARENA_RECEIVE ? railhead::ipc::SegmentKind::receive : railhead::ipc::SegmentKind::combine, bytes);
    if (!block) return report(block);
    *memory = block->data;
    return RH_OK;
  });
}

rh_status rh_free(rh_group* group, void* memory) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    return memory == nullptr ? RH_OK : report(found->context().arena->free(memory));
  });
}

rh_status rh_dispatch(rh_group* group, const rh_dispatch_args* args, rh_dispatch_result* result, rh_handle** handle,
                      rh_event** event) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    if (result == nullptr || handle == nullptr) {
      return report(Code::invalid_argument, result == nullptr ? "result is NULL" : "handle is NULL");
    }
    auto read = read_struct(args, "rh_dispatch_args");
    if (!read) return report(read);
    std::shared_ptr<Handle> cached;
    if (read->cached != nullptr) {
      auto known = find_handle(read->cached, found);
      if (!known) return report(known);
      cached = *known;
    }
    auto op = found->dispatch(*read, cached, false);
    if (!op) return report(op);
    *handle = cached != nullptr
                  ? read->cached
                  : process().handles.add(std::make_shared<HandleEntry>(HandleEntry{(*op)->handle(), found}));
    return conclude({*op, *op, found, result}, event);
  });
}

rh_status rh_dispatch_plan(rh_group* group, const rh_dispatch_args* args, uint64_t* row_count, rh_handle** handle) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    if (row_count == nullptr || handle == nullptr) {
      return report(Code::invalid_argument, row_count == nullptr ? "row_count is NULL" : "handle is NULL");
    }
    auto read = read_struct(args, "rh_dispatch_args");
    if (!read) return report(read);
    if (read->cached != nullptr) {
      return report(Code::invalid_argument,
                    "cached with rh_dispatch_plan: a cached dispatch has its counts, use rh_dispatch");
    }
    auto op = found->dispatch(*read, nullptr, true);
    if (!op) return report(op);
    const std::shared_ptr<DispatchOp> dispatch = *op;
    found->engine().wait(railhead::ipc::Deadline::never(),
                         [&] { return dispatch->counted() || dispatch->concluded(); });
    const Status status = found->engine().locked([&] { return dispatch->concluded() ? dispatch->result() : Status(); });
    if (!status.ok()) return report(status);
    *row_count = dispatch->output_rows();
    *handle = process().handles.add(std::make_shared<HandleEntry>(HandleEntry{dispatch->handle(), found}));
    // Others need our writes while this caller allocates.
    found->engine().detach();
    return RH_OK;
  });
}

rh_status rh_dispatch_run(rh_group* group, rh_handle* handle, void* out, size_t out_rows, rh_dispatch_result* result,
                          rh_event** event) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    if (result == nullptr) return report(Code::invalid_argument, "result is NULL");
    auto known = find_handle(handle, found);
    if (!known) return report(known);
    auto op = found->planned(*known);
    if (!op) return report(op);
    if (auto run = found->run(*op, out, out_rows); !run) return report(run);
    return conclude({*op, *op, found, result}, event);
  });
}

rh_status rh_handle_release(rh_handle* handle) {
  return guarded([&]() -> rh_status {
    if (handle == nullptr) return RH_OK;
    const auto entry = process().handles.take(handle);
    if (entry == nullptr) return unknown("the handle");
    entry->group->release(entry->handle);
    return RH_OK;
  });
}

rh_status rh_combine(rh_group* group, const rh_combine_args* args, rh_event** event) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    auto read = read_struct(args, "rh_combine_args");
    if (!read) return report(read);
    auto known = find_handle(read->handle, found);
    if (!known) return report(known);
    auto op = found->combine(*read, *known);
    if (!op) return report(op);
    return conclude({*op, nullptr, found, nullptr}, event);
  });
}

rh_status rh_event_wait(rh_event* event, uint64_t timeout_ms) {
  return guarded([&]() -> rh_status {
    const auto entry = process().events.find(event);
    if (entry == nullptr) return unknown("the event");
    const auto deadline = timeout_ms == UINT64_MAX
                              ? railhead::ipc::Deadline::never()
                              : railhead::ipc::Deadline::after(std::chrono::milliseconds(timeout_ms));
    Engine& engine = entry->group->engine();
    if (!engine.wait(deadline, [&] { return settled(*entry); })) {
      return report(Status(Code::timeout, "the operation (op " + std::to_string(entry->op->number()) +
                                              ") is not complete after " + std::to_string(timeout_ms) +
                                              " ms; the event still stands"));
    }
    process().events.take(event);
    return report(engine.locked([&] { return settle(entry->group, *entry); }));
  });
}

rh_status rh_event_test(rh_event* event) {
  return guarded([&]() -> rh_status {
    const auto entry = process().events.find(event);
    if (entry == nullptr) return unknown("the event");
    Engine& engine = entry->group->engine();
    engine.poll();
    const bool done = engine.locked([&] { return settled(*entry); }) || !engine.status().ok();
    if (!done) return RH_IN_PROGRESS;
    process().events.take(event);
    return report(engine.locked([&] { return settle(entry->group, *entry); }));
  });
}

rh_status rh_group_stats(rh_group* group, rh_op_stats* stats, size_t* count) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    if (count == nullptr || (stats == nullptr && *count != 0)) {
      return report(Code::invalid_argument, count == nullptr ? "count is NULL" : "stats is NULL");
    }
    const auto records = found->engine().records();
    *count = std::min(*count, records.size());
    for (size_t i = 0; i < *count; ++i) {
      const OpRecord& r = records[i];
      rh_op_stats& out = stats[i];
      out.size = sizeof(out);
      out.op = r.op;
      out.kind = static_cast<uint32_t>(r.kind);
      out.last_rank = r.times.last_rank;
      out.wait_ns = r.times.headers_ns > r.times.called_ns ? r.times.headers_ns - r.times.called_ns : 0;
      out.transfer_ns = r.times.done_ns > r.times.headers_ns ? r.times.done_ns - r.times.headers_ns : 0;
      out.total_ns = r.times.done_ns - r.times.called_ns;
      out.rows = r.rows;
      out.rail_bytes = r.rail_bytes;
    }
    return RH_OK;
  });
}
