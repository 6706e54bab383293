// The C interface: sessions, groups, arena memory, statistics.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "client/arguments.hpp"
#include "client/c_process.hpp"
#include "client/daemon_choice.hpp"
#include "ipc/deadline.hpp"
#include "ipc/version.hpp"

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
      if (read->timeout_ms != 0) own.timeout = railhead::ipc::bounded_ms(read->timeout_ms);
      own.job = job_label(read->job);
    } else {
      own.job = job_label(nullptr);
    }
    auto opened = Session::open(own);
    if (!opened) return report(opened);
    if (Status marked = process().mark.set(); !marked.ok()) return report(marked);
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
    auto block = found->context().arena->hand_out(
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
    return memory == nullptr ? RH_OK : report(found->context().arena->take_back(memory));
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
    // The caller's array is of its own version's structs.
    const size_t step = *count == 0 || stats->size == 0 ? sizeof(rh_op_stats) : stats->size;
    if (step < sizeof(size_t) || step > kMostStructBytes) {
      return report(Code::invalid_argument,
                    ("stats[0].size is " + std::to_string(step) + ": set it to sizeof(rh_op_stats)").c_str());
    }
    *count = std::min(*count, records.size());
    for (size_t i = 0; i < *count; ++i) {
      const OpRecord& r = records[i];
      rh_op_stats out{};
      out.size = step;
      out.op = r.op;
      out.kind = static_cast<uint32_t>(r.kind);
      out.last_rank = r.times.last_rank;
      out.wait_ns = r.times.headers_ns > r.times.called_ns ? r.times.headers_ns - r.times.called_ns : 0;
      out.transfer_ns = r.times.done_ns > r.times.headers_ns ? r.times.done_ns - r.times.headers_ns : 0;
      out.total_ns = r.times.done_ns - r.times.called_ns;
      out.rows = r.rows;
      out.rail_bytes = r.rail_bytes;
      std::memcpy(reinterpret_cast<std::byte*>(stats) + i * step, &out, std::min(step, sizeof(out)));
    }
    return RH_OK;
  });
}
