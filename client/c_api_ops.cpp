// The C interface: operations, handles, events.
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "client/arguments.hpp"
#include "client/c_process.hpp"

namespace railhead::client {
namespace {

// The handle if it is alive and of this group; else why not.
Result<std::shared_ptr<Handle>> find_handle(const rh_handle* name, const std::shared_ptr<Group>& group) {
  const auto entry = process().handles.find(name);
  if (entry == nullptr) {
    return fail(Code::invalid_usage, "the handle is NULL, was released, or is not one of ours");
  }
  if (entry->group != group) return fail(Code::invalid_usage, "the handle belongs to another group");
  return entry->handle;
}

std::string short_of(const DispatchOp& dispatch) {
  return "out holds " + std::to_string(dispatch.out_rows()) + " rows, this rank receives " +
         std::to_string(dispatch.output_rows());
}

// Under the group lock: results of a finished (or too short) dispatch and the code to return for it. None: neither.
std::optional<Status> outcome(const EventEntry& call) noexcept {
  const Op& op = *call.op;
  const DispatchOp* const dispatch = call.dispatch;
  const bool good = op.concluded() && op.result().ok();
  const bool too_small = dispatch != nullptr && !op.concluded() && dispatch->too_small();
  const bool dropped = dispatch != nullptr && good && dispatch->dropped();
  if (!op.concluded() && !too_small) return std::nullopt;
  try {
    if (too_small) {
      return Status(Code::limit_exceeded, short_of(*dispatch) + "; finish with rh_dispatch_run and a larger output");
    }
    if (dropped) {
      return Status(Code::limit_exceeded, short_of(*dispatch) + "; its handle is released and the rows are dropped");
    }
    if (good && dispatch != nullptr && call.result != nullptr) call.group->fill(*dispatch, *call.result);
    return op.result();
  } catch (const std::bad_alloc&) {
    return Status(too_small || dropped ? Code::limit_exceeded : op.result().code(), {});  // without its sentence
  }
}

Group::Then then(const rh_event* const* event) {
  return event == nullptr ? Group::Then::waits : Group::Then::goes_on;
}

using NewHandle = Registry<rh_handle, HandleEntry>::Pending;
using NewEvent = Registry<rh_event, EventEntry>::Pending;

std::shared_ptr<HandleEntry> entry_of(const std::shared_ptr<Handle>& handle, const std::shared_ptr<Group>& group) {
  return std::make_shared<HandleEntry>(HandleEntry{handle, group});
}

// How a call on an operation ends: with its result, or with an event, which has its name before the operation starts.
class Ending {
 public:
  Ending(EventEntry call, rh_event** event)
      : call_(std::move(call)),
        event_(event),
        name_(process().events, event == nullptr ? nullptr : std::make_shared<EventEntry>(call_)) {}

  Status start() {
    return call_.group->start(call_.op, event_ == nullptr ? Carried::by_waiters : Carried::by_progress_thread);
  }

  // After the start: only the group's end can stand in the way.
  rh_status conclude() {
    if (event_ == nullptr) return wait();
    if (const Status ended = call_.group->engine().detach(); !ended.ok()) return report(ended);
    *event_ = name_.keep();
    return RH_OK;
  }

 private:
  rh_status wait() {
    Engine& engine = call_.group->engine();
    std::optional<Status> result;
    bool in_flight = false;
    // The engine ends an operation at its own deadline, on all ranks.
    const auto over = [&] {
      result = outcome(call_);
      in_flight = !call_.op->concluded();
      return result.has_value();
    };
    engine.wait(ipc::Deadline::never(), std::ref(over));  // by reference: a copy would be an allocation
    // Too short a place: others need what this rank sends while its caller finds a larger one.
    if (result && in_flight) {
      if (const Status ended = engine.detach(); !ended.ok()) return report(ended);
    }
    return report(result ? *result : engine.status());
  }

  EventEntry call_;
  rh_event** event_;
  NewEvent name_;
};

}  // namespace
}  // namespace railhead::client

using namespace railhead::client;  // NOLINT(google-build-using-namespace): the C functions below are this file's
                                   // purpose
using railhead::Code;
using railhead::Status;

rh_status rh_dispatch(rh_group* group, const rh_dispatch_args* args, rh_dispatch_result* result, rh_handle** handle,
                      rh_event** event) {
  return guarded([&]() -> rh_status {
    auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    if (result == nullptr || handle == nullptr) {
      return report(found->refuse({Code::invalid_argument, result == nullptr ? "result is NULL" : "handle is NULL"}));
    }
    auto read = read_struct(args, "rh_dispatch_args");
    if (!read) return report(found->refuse(read.error()));
    std::shared_ptr<Handle> cached;
    if (read->cached != nullptr) {
      auto known = find_handle(read->cached, found);
      if (!known) return report(found->refuse(known.error()));
      cached = *known;
    }
    auto op = found->make_dispatch(*read, cached, then(event));
    if (!op) return report(op);
    NewHandle name(process().handles, cached != nullptr ? nullptr : entry_of((*op)->handle(), found));
    DispatchOp* const dispatch = op->get();
    Ending ending({std::move(found), std::move(*op), dispatch, result}, event);
    if (const Status started = ending.start(); !started.ok()) return report(started);
    *handle = cached != nullptr ? read->cached : name.keep();
    return ending.conclude();
  });
}

rh_status rh_dispatch_plan(rh_group* group, const rh_dispatch_args* args, uint64_t* row_count, rh_handle** handle) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    if (row_count == nullptr || handle == nullptr) {
      return report(
          found->refuse({Code::invalid_argument, row_count == nullptr ? "row_count is NULL" : "handle is NULL"}));
    }
    auto read = read_struct(args, "rh_dispatch_args");
    if (!read) return report(found->refuse(read.error()));
    if (read->cached != nullptr) {
      return report(found->refuse(
          {Code::invalid_argument, "cached with rh_dispatch_plan: a cached dispatch has its counts, use rh_dispatch"}));
    }
    auto op = found->make_dispatch(*read, nullptr, Group::Then::makes_room);
    if (!op) return report(op);
    const std::shared_ptr<DispatchOp> dispatch = *op;
    NewHandle name(process().handles, entry_of(dispatch->handle(), found));
    // The progress thread: others need our writes while this caller allocates.
    if (const Status started = found->start(dispatch, Carried::by_progress_thread); !started.ok()) {
      return report(started);
    }
    found->engine().wait(railhead::ipc::Deadline::never(),
                         [&] { return dispatch->counted() || dispatch->concluded(); });
    const Status status = found->engine().locked([&] { return dispatch->concluded() ? dispatch->result() : Status(); });
    if (!status.ok()) return report(status);
    *row_count = dispatch->output_rows();
    if (const Status ended = found->engine().detach(); !ended.ok()) return report(ended);
    *handle = name.keep();
    return RH_OK;
  });
}

rh_status rh_dispatch_run(rh_group* group, rh_handle* handle, void* out, size_t out_rows, rh_dispatch_result* result,
                          rh_event** event) {
  return guarded([&]() -> rh_status {
    const auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    if (result == nullptr) return report(found->refuse({Code::invalid_argument, "result is NULL"}));
    auto known = find_handle(handle, found);
    if (!known) return report(found->refuse(known.error()));
    while (true) {
      auto op = found->planned(*known, then(event));
      if (!op) return report(op);
      Ending ending({found, *op, op->get(), result}, event);
      auto run = found->run(*op, out, out_rows);
      if (!run) return report(run);
      if (*run) return ending.conclude();
      // Another thread ran this one; there may be another.
    }
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
    auto found = find_group(group);
    if (found == nullptr) return unknown("the group");
    auto read = read_struct(args, "rh_combine_args");
    if (!read) return report(found->refuse(read.error()));
    auto known = find_handle(read->handle, found);
    if (!known) return report(found->refuse(known.error()));
    auto op = found->make_combine(*read, std::move(*known), then(event));
    if (!op) return report(op);
    Ending ending({std::move(found), std::move(*op), nullptr, nullptr}, event);
    if (const Status started = ending.start(); !started.ok()) return report(started);
    return ending.conclude();
  });
}

rh_status rh_event_wait(rh_event* event, uint64_t timeout_ms) {
  return guarded([&]() -> rh_status {
    const auto entry = process().events.find(event);
    if (entry == nullptr) return unknown("the event");
    Engine& engine = entry->group->engine();
    std::optional<Status> result;
    // Asked once: what ends the wait is what the caller is told, whatever another thread does with the handle
    // meanwhile.
    const auto over = [&] {
      result = outcome(*entry);
      return result.has_value();
    };
    if (!engine.wait(railhead::ipc::Deadline::after_ms(timeout_ms), std::ref(over))) {
      return report(Status(Code::in_progress, "the operation (op " + std::to_string(entry->op->number()) +
                                                  ") is not complete after " + std::to_string(timeout_ms) +
                                                  " ms; the event still stands"));
    }
    process().events.take(event);  // unless the group was closed, which ended the wait
    return report(result ? *result : engine.status());
  });
}

rh_status rh_event_test(rh_event* event) {
  return guarded([&]() -> rh_status {
    const auto entry = process().events.find(event);
    if (entry == nullptr) return unknown("the event");
    Engine& engine = entry->group->engine();
    engine.poll();
    auto result = engine.locked([&] { return outcome(*entry); });
    if (!result) {
      if (Status ended = engine.status(); !ended.ok()) result = std::move(ended);
    }
    if (!result) return RH_IN_PROGRESS;
    process().events.take(event);
    return report(*result);
  });
}
