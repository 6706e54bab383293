// A forked child of a process with sessions: every call says so and does nothing, and the parent notices nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/refusals.hpp"
#include "tests/unit/ipc/child.hpp"

namespace railhead::test {
namespace {

// What the parent holds when it forks.
struct Held {
  rh_session* session;
  rh_unique_id id;
  rh_group_config config;
  rh_group* group;
  rh_handle* complete;
  rh_dispatch_result got;
  rh_handle* planned;
  rh_event* event;
  void* memory;
};

struct NamedCall {
  const char* name;
  std::function<rh_status(const Held&)> make;
};

std::vector<NamedCall> calls() {
  static SmallCall small;
  static auto result = make<rh_dispatch_result>();
  static rh_handle* handle = nullptr;
  static rh_event* event = nullptr;
  return {
      {"rh_session_open",
       [](const Held&) {
         rh_session* out = nullptr;
         return rh_session_open(nullptr, &out);
       }},
      {"rh_unique_id_create",
       [](const Held& h) {
         rh_unique_id out;
         return rh_unique_id_create(h.session, &out);
       }},
      {"rh_group_create",
       [](const Held& h) {
         rh_group* out = nullptr;
         return rh_group_create(h.session, &h.id, &h.config, &out);
       }},
      {"rh_group_query",
       [](const Held& h) {
         auto out = make<rh_group_info>();
         return rh_group_query(h.group, &out);
       }},
      {"rh_group_status", [](const Held& h) { return rh_group_status(h.group); }},
      {"rh_group_abort", [](const Held& h) { return rh_group_abort(h.group, "by a child"); }},
      {"rh_alloc",
       [](const Held& h) {
         void* out = nullptr;
         return rh_alloc(h.group, RH_ARENA_RECEIVE, 64, &out);
       }},
      {"rh_free", [](const Held& h) { return rh_free(h.group, h.memory); }},
      {"rh_dispatch", [](const Held& h) { return rh_dispatch(h.group, &small.args, &result, &handle, &event); }},
      {"rh_dispatch_plan",
       [](const Held& h) {
         std::uint64_t rows = 0;
         return rh_dispatch_plan(h.group, &small.args, &rows, &handle);
       }},
      {"rh_dispatch_run",
       [](const Held& h) { return rh_dispatch_run(h.group, h.planned, nullptr, 0, &result, &event); }},
      {"rh_combine",
       [](const Held& h) {
         const rh_combine_args args = small.combine_args(h.got, h.complete);
         return rh_combine(h.group, &args, &event);
       }},
      {"rh_event_wait", [](const Held& h) { return rh_event_wait(h.event, UINT64_MAX); }},
      {"rh_event_test", [](const Held& h) { return rh_event_test(h.event); }},
      {"rh_group_stats",
       [](const Held& h) {
         auto out = make<rh_op_stats>();
         std::size_t count = 1;
         return rh_group_stats(h.group, &out, &count);
       }},
      {"rh_handle_release", [](const Held& h) { return rh_handle_release(h.complete); }},
      {"rh_group_close", [](const Held& h) { return rh_group_close(h.group); }},
      {"rh_session_close", [](const Held& h) { return rh_session_close(h.session); }},
  };
}

// In the child: the number of calls that did not answer as they must.
int ask_all(const Held& held) {
  int wrong = 0;
  for (const NamedCall& call : calls()) {
    const rh_status status = call.make(held);
    if (status == RH_FORKED && std::strstr(rh_last_error(), "a child of fork()") != nullptr) continue;
    std::fprintf(stderr, "%s in a child: %s, %s\n", call.name, rh_status_name(status), rh_last_error());
    ++wrong;
  }
  return wrong;
}

TEST(ForkedChild, EveryCallThatTakesAnObjectIsCovered) {
  std::ifstream in(RAILHEAD_HEADER);
  const std::string header{std::istreambuf_iterator<char>(in), {}};
  std::set<std::string> declared;
  const std::regex function("RH_API [a-z_ *]+[ *](rh_[a-z_]+)\\(");
  for (std::sregex_iterator at(header.begin(), header.end(), function); at != std::sregex_iterator(); ++at) {
    declared.insert((*at)[1]);
  }
  for (const char* const without : {"rh_status_name", "rh_last_error", "rh_version"}) {
    EXPECT_EQ(declared.erase(without), 1U) << without;
  }
  std::set<std::string> covered;
  for (const NamedCall& call : calls()) covered.insert(call.name);
  EXPECT_EQ(declared, covered);
}

// A dispatch that is planned, and one in flight, when it forks; both go on in the parent.
TEST(ForkedChild, GetsForkedFromEveryCallAndTheParentGoesOn) {
  for (const std::uint32_t hosts : {1U, 2U}) {
    Cluster cluster({.hosts = hosts});
    cluster.run({0, static_cast<std::uint16_t>(hosts - 1)},
                [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
                  Held held{};
                  held.session = session.get();
                  held.id = id;
                  held.config = small_config(2, rank);
                  const Group group(session, id, held.config);
                  SmallCall call;
                  auto [got, complete] = group.dispatch(call.args);
                  const Memory memory = group.alloc(RH_ARENA_COMBINE, 4096);
                  std::memset(memory.data(), 0x5a, memory.bytes());
                  auto [rows, planned] = group.plan(call.args);
                  auto late = make<rh_dispatch_result>();
                  rh_handle* flying = nullptr;
                  ASSERT_EQ(rh_dispatch(group.get(), &call.args, &late, &flying, &held.event), RH_OK);
                  const Handle owner(flying);
                  held.group = group.get();
                  held.complete = complete.get();
                  held.got = got;
                  held.planned = planned.get();
                  held.memory = memory.data();
                  if (rank == 0) {
                    EXPECT_EQ(ipc::test::Child([&] { return ask_all(held); }).wait(), 0);
                  }
                  EXPECT_EQ(group.run(planned, nullptr, 0).row_count, rows);
                  EXPECT_EQ(rh_event_wait(held.event, UINT64_MAX), RH_OK) << rh_last_error();
                  group.combine(call.combine_args(got, complete.get()));
                  for (std::size_t i = 0; i < call.y.size(); ++i) ASSERT_EQ(call.y[i], 2 * call.x[i]) << i;
                  EXPECT_EQ(memory.as<unsigned char>()[4095], 0x5a);
                  complete.release();
                  good_round(group.get());
                });
  }
}

}  // namespace
}  // namespace railhead::test
