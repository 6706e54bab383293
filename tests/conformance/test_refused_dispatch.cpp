// A dispatch with bad arguments is refused by name at the caller, nothing is published, and the corrected call works on
// all ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <latch>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/conformance/refusals.hpp"

namespace railhead::test {
namespace {

const std::vector<Spoiled<SmallCall>>& spoiled() {
  static const std::vector<Spoiled<SmallCall>> list = {
      {"id too large", [](SmallCall& c) { c.ids[3] = 4; }, {"row 1", "slot 1", "4", "0..3"}},
      {"id too small", [](SmallCall& c) { c.ids[4] = -2; }, {"row 2", "slot 0", "-2"}},
      {"id beyond 32 bits", [](SmallCall& c) { c.ids[0] = 1LL << 32; }, {"row 0", "slot 0", "4294967296"}},
      {"no ids", [](SmallCall& c) { c.args.ids = nullptr; }, {"ids", "NULL"}},
      {"no x", [](SmallCall& c) { c.args.x = nullptr; }, {"x is NULL", "3"}},
      {"no side data", [](SmallCall& c) { c.args.side = nullptr; }, {"side is NULL", "8"}},
      {"too much side data", [](SmallCall& c) { c.args.side_bytes = 9; }, {"side_bytes", "9", "8"}},
      {"top-k above the group's", [](SmallCall& c) { c.args.topk = 3; }, {"topk", "3", "2"}},
      {"x pitch below a row", [](SmallCall& c) { c.args.x_pitch = 63; }, {"x_pitch", "63", "64"}},
      {"side pitch below a row", [](SmallCall& c) { c.args.side_pitch = 7; }, {"side_pitch", "7", "8"}},
      {"unknown type", [](SmallCall& c) { put(c.args.type, 9); }, {"type", "9"}},
      {"unknown id type", [](SmallCall& c) { put(c.args.id_type, 7); }, {"id_type", "7"}},
      {"unknown layout", [](SmallCall& c) { put(c.args.layout, 5); }, {"layout", "5"}},
      {"alignment too large", [](SmallCall& c) { c.args.align = 70'000; }, {"align", "70000"}},
      {"alignment of layout rank",
       [](SmallCall& c) {
         c.args.layout = RH_LAYOUT_RANK;
         c.args.align = 8;
       },
       {"align", "8", "rank"}},
      {"too many tokens", [](SmallCall& c) { c.args.tokens = 1U << 31; }, {"tokens", "2147483648"}},
      {"more rows than can be counted",
       [](SmallCall& c) {
         c.args.out = c.y.data();
         c.args.out_rows = 1ULL << 62;
       },
       {"out_rows", "4611686018427387904", "4294967295"}},
      {"size not set", [](SmallCall& c) { c.args.size = 0; }, {"rh_dispatch_args.size is 0"}},
      {"size of rubbish", [](SmallCall& c) { c.args.size = SIZE_MAX / 3; }, {"rh_dispatch_args"}, RH_UNSUPPORTED},
  };
  return list;
}

class RefusedDispatch : public Refused {
 protected:
  std::vector<std::uint16_t> hosts() const { return {0, last_host()}; }
};

TEST_P(RefusedDispatch, BadArgumentsAreNamedAndTheCorrectedCallWorks) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    std::uint64_t done = 0;
    for (const auto& bad : spoiled()) {
      if (rank == 1) {
        SmallCall call;
        bad.spoil(call);
        auto result = make<rh_dispatch_result>();
        rh_handle* handle = nullptr;
        rh_event* event = nullptr;
        std::uint64_t rows = 0;
        expect_refused(group.get(), bad.what, rh_dispatch(group.get(), &call.args, &result, &handle, nullptr),
                       bad.status, bad.says, done);
        expect_refused(group.get(), bad.what, rh_dispatch(group.get(), &call.args, &result, &handle, &event),
                       bad.status, bad.says, done);
        expect_refused(group.get(), bad.what, rh_dispatch_plan(group.get(), &call.args, &rows, &handle), bad.status,
                       bad.says, done);
        EXPECT_EQ(handle, nullptr);
        EXPECT_EQ(event, nullptr);
      }
      good_round(group.get());
      done += 2;
    }
  });
}

TEST_P(RefusedDispatch, MissingOutputsOfTheCall) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    auto result = make<rh_dispatch_result>();
    rh_handle* handle = nullptr;
    std::uint64_t rows = 0;
    rh_group* const g = group.get();
    if (rank == 0) {
      expect_refused(g, "no result", rh_dispatch(g, &call.args, nullptr, &handle, nullptr), RH_INVALID_ARGUMENT,
                     {"result is NULL"}, 0);
      expect_refused(g, "no handle", rh_dispatch(g, &call.args, &result, nullptr, nullptr), RH_INVALID_ARGUMENT,
                     {"handle is NULL"}, 0);
      expect_refused(g, "no arguments", rh_dispatch(g, nullptr, &result, &handle, nullptr), RH_INVALID_ARGUMENT,
                     {"rh_dispatch_args is NULL"}, 0);
      expect_refused(g, "no row count", rh_dispatch_plan(g, &call.args, nullptr, &handle), RH_INVALID_ARGUMENT,
                     {"row_count is NULL"}, 0);
      expect_refused(g, "run without a handle", rh_dispatch_run(g, nullptr, nullptr, 0, &result, nullptr),
                     RH_INVALID_USAGE, {"handle"}, 0);
      EXPECT_EQ(rh_dispatch(nullptr, &call.args, &result, &handle, nullptr), RH_INVALID_USAGE);
      EXPECT_EQ(rh_dispatch_plan(nullptr, &call.args, &rows, &handle), RH_INVALID_USAGE);
    }
    good_round(g);
  });
}

// A newer program with a longer struct: fine while it asks for nothing unknown, else refused.
TEST_P(RefusedDispatch, LargerStructs) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    struct {
      rh_dispatch_args args;
      std::uint64_t later;
    } longer{call.args, 1};
    longer.args.size = sizeof(longer);
    auto result = make<rh_dispatch_result>();
    rh_handle* handle = nullptr;
    expect_refused(group.get(), "unknown tail", rh_dispatch(group.get(), &longer.args, &result, &handle, nullptr),
                   RH_UNSUPPORTED, {"rh_dispatch_args", std::to_string(sizeof(longer))}, 0);
    longer.later = 0;
    EXPECT_EQ(rh_dispatch(group.get(), &longer.args, &result, &handle, nullptr), RH_OK) << rh_last_error();
    const Handle owner(handle);
    good_round(group.get());
  });
}

TEST_P(RefusedDispatch, TooManyHandles) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    std::array<Handle, kSmallHandles> live;
    for (Handle& handle : live) handle = group.dispatch(call.args).second;
    auto result = make<rh_dispatch_result>();
    rh_handle* handle = nullptr;
    expect_refused(group.get(), "fifth handle", rh_dispatch(group.get(), &call.args, &result, &handle, nullptr),
                   RH_LIMIT_EXCEEDED, {"4", "max_handles"}, kSmallHandles);
    live[2].release();
    good_round(group.get());
  });
}

// Who is refused does not wait for room first: here only the refusal lets the other rank go on.
TEST_P(RefusedDispatch, TooManyHandlesWhileTheDepthIsFull) {
  std::promise<void> refused;
  const std::shared_future<void> after = refused.get_future().share();
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    auto config = small_config(2, rank);
    config.depth = 2;
    config.max_handles = 2;
    const Group group(session, id, config);
    rh_group* const g = group.get();
    SmallCall call;
    if (rank == 1) after.wait();
    std::array<Handle, 2> handles;
    std::array<rh_dispatch_result, 2> results{make<rh_dispatch_result>(), make<rh_dispatch_result>()};
    std::array<rh_event*, 2> events{};
    for (std::size_t i = 0; i < 2; ++i) {
      rh_handle* handle = nullptr;
      ASSERT_EQ(rh_dispatch(g, &call.args, &results[i], &handle, &events[i]), RH_OK) << rh_last_error();
      handles[i] = Handle(handle);
    }
    if (rank == 0) {
      auto result = make<rh_dispatch_result>();
      rh_handle* handle = nullptr;
      rh_event* event = nullptr;
      expect_refused(g, "third handle", rh_dispatch(g, &call.args, &result, &handle, &event), RH_LIMIT_EXCEEDED,
                     {"2", "max_handles"}, 0);
      refused.set_value();
    }
    for (rh_event* event : events) ASSERT_EQ(rh_event_wait(event, 30'000), RH_OK) << rh_last_error();
    for (Handle& handle : handles) handle.release();
    good_round(g);
  });
}

// Known handles only, of this group, complete, and not released by any rank.
TEST_P(RefusedDispatch, HandlesThatCannotBeCached) {
  std::promise<UniqueId> made;
  const std::shared_future<UniqueId> other_id = made.get_future().share();
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    if (rank == 0) made.set_value(session.unique_id());
    const Group group(session, id, small_config(2, rank));
    const Group other(session, other_id.get(), small_config(2, rank));
    SmallCall call;
    auto result = make<rh_dispatch_result>();
    const auto refused = [&](const char* what, rh_handle* cached, const std::vector<std::string>& says,
                             std::uint64_t done) {
      rh_dispatch_args args = call.args;
      args.cached = cached;
      rh_handle* handle = nullptr;
      rh_event* event = nullptr;
      expect_refused(group.get(), what, rh_dispatch(group.get(), &args, &result, &handle, &event), RH_INVALID_USAGE,
                     says, done);
    };
    const Handle foreign = other.dispatch(call.args).second;
    refused("of another group", foreign.get(), {"another group"}, 0);
    Handle mine = group.dispatch(call.args).second;
    rh_handle* const name = mine.get();
    if (rank == 1) mine.release();
    if (rank == 1) refused("released here", name, {"released"}, 1);
    good_round(group.get());
    if (rank == 0) refused("released by rank 1", name, {"rank 1", "op 1"}, 3);
    rh_dispatch_result planned_result{};
    auto [rows, planned] = group.plan(call.args);
    refused("planned, not run", planned.get(), {"op 4", "not complete"}, 3);
    planned_result = group.run(planned, nullptr, 0);
    EXPECT_EQ(planned_result.row_count, rows);
    good_round(group.get());
  });
}

// The operation that would have to end first waits for this caller, who would wait here.
TEST_P(RefusedDispatch, AnAsynchronousCallBehindAPlannedOneThatFillsTheDepth) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    auto config = small_config(2, rank);
    config.depth = 1;
    const Group group(session, id, config);
    SmallCall call;
    const auto [rows, planned] = group.plan(call.args);
    auto result = make<rh_dispatch_result>();
    rh_handle* handle = nullptr;
    rh_event* event = nullptr;
    expect_refused(group.get(), "behind a plan", rh_dispatch(group.get(), &call.args, &result, &handle, &event),
                   RH_INVALID_USAGE, {"op 1", "not run", "depth"}, 0);
    EXPECT_EQ(event, nullptr);
    EXPECT_EQ(group.run(planned, nullptr, 0).row_count, rows);
    good_round(group.get());
  });
}

// Nobody can run it any more: the others get their rows all the same.
TEST_P(RefusedDispatch, APlannedHandleThatIsReleasedGoesThrough) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    auto [rows, planned] = group.plan(call.args);
    if (rank == 0) {
      planned.release();
    } else {
      EXPECT_EQ(group.run(planned, nullptr, 0).row_count, rows);
    }
    good_round(group.get());
  });
}

// Output in the combine arena, which peers map read-only, or past the end of an allocation: copied there, not written
// by peers.
TEST_P(RefusedDispatch, PlaceInTheCombineArena) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    const Memory place = group.alloc(RH_ARENA_COMBINE, 6 * kSmallHidden * sizeof(float));
    rh_dispatch_args args = call.args;
    args.out = place.data();
    args.out_rows = 6;
    const auto [result, handle] = group.dispatch(args);
    EXPECT_EQ(result.rows, place.data());
    EXPECT_EQ(place.as<float>()[0], 1.0F);
    const rh_combine_args combine = call.combine_args(result, handle.get());
    group.combine(combine);
    for (std::size_t i = 0; i < call.y.size(); ++i) ASSERT_EQ(call.y[i], 2 * call.x[i]);
  });
}

TEST_P(RefusedDispatch, ReceivedRowsAreNoneOfTheCallersMemory) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    const auto [result, handle] = group.dispatch(call.args);
    ASSERT_EQ(rh_free(group.get(), result.rows), RH_INVALID_ARGUMENT);
    const rh_combine_args combine = call.combine_args(result, handle.get());
    group.combine(combine);
    for (std::size_t i = 0; i < call.y.size(); ++i) ASSERT_EQ(call.y[i], 2 * call.x[i]);
  });
}

// A refusal at the handle limit beside a step that takes up a release of another rank: neither waits for the other for
// ever. Nothing can take the two threads apart once they do, so the watchdog ends the process.
TEST_P(RefusedDispatch, AtTheHandleLimitWhileOthersReleaseTheirs) {
  std::promise<void> over;
  std::thread watchdog([&over] {
    if (over.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready) return;
    std::fputs("a refused call and a step wait for each other\n", stderr);
    std::abort();
  });
  constexpr std::uint32_t kHandles = 128;
  std::latch together(2);  // who leaves earlier ends the group
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    rh_group_config config = small_config(2, rank);
    config.max_handles = kHandles;
    const Group group(session, id, config);
    SmallCall call;
    rh_dispatch_result result{};
    std::vector<Handle> handles(kHandles);
    for (Handle& handle : handles) std::tie(result, handle) = group.dispatch(call.args);
    std::atomic<bool> stop{rank != 0};
    std::thread refused([&] {
      SmallCall more;
      auto none = make<rh_dispatch_result>();
      rh_handle* handle = nullptr;
      while (!stop) ASSERT_EQ(rh_dispatch(group.get(), &more.args, &none, &handle, nullptr), RH_LIMIT_EXCEEDED);
    });
    for (std::uint32_t i = 1; i < kHandles; ++i) {
      if (rank == 1) handles[i].release();  // travels with the next header
      group.combine(call.combine_args(result, handles[0].get()));
    }
    stop = true;
    refused.join();
    together.arrive_and_wait();
  });
  over.set_value();
  watchdog.join();
}

INSTANTIATE_TEST_SUITE_P(Hosts, RefusedDispatch, refusal_hosts(), refusal_name);

}  // namespace
}  // namespace railhead::test
