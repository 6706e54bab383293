// A place that is too small for what a rank receives: told with both numbers, nothing is lost, and the dispatch goes on
// in a larger one, or without.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/refusals.hpp"

namespace railhead::test {
namespace {

class PlaceTooSmall : public Refused {};

// A dispatch into room for this many of the six rows.
rh_status dispatch_into(rh_group* group, SmallCall& call, std::vector<float>& place, std::size_t rows,
                        rh_dispatch_result& result, rh_handle** handle, rh_event** event, rh_handle* cached = nullptr) {
  place.resize(6 * kSmallHidden);
  rh_dispatch_args args = call.args;
  args.cached = cached;
  args.out = place.data();
  args.out_rows = rows;
  return rh_dispatch(group, &args, &result, handle, event);
}

// Too small a place is told with both numbers; the same dispatch goes on in a larger one.
TEST_P(PlaceTooSmall, ThenLarger) {
  cluster_.run({0, last_host()}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    rh_group* const g = group.get();
    SmallCall call;
    std::vector<float> place;
    for (const bool cached : {false, true}) {
      auto result = make<rh_dispatch_result>();
      Handle owner;
      rh_handle* handle = nullptr;
      if (cached) owner = group.dispatch(call.args).second;
      ASSERT_EQ(dispatch_into(g, call, place, 5, result, &handle, nullptr, owner.get()), RH_LIMIT_EXCEEDED)
          << rh_last_error();
      EXPECT_NE(std::string(rh_last_error()).find("5 rows"), std::string::npos) << rh_last_error();
      EXPECT_NE(std::string(rh_last_error()).find("receives 6"), std::string::npos) << rh_last_error();
      if (!cached) owner = Handle(handle);
      EXPECT_EQ(rh_dispatch_run(g, handle, place.data(), 4, &result, nullptr), RH_LIMIT_EXCEEDED);
      ASSERT_EQ(rh_dispatch_run(g, handle, place.data(), 6, &result, nullptr), RH_OK) << rh_last_error();
      EXPECT_EQ(result.rows, place.data());
      EXPECT_EQ(rh_dispatch_run(g, handle, place.data(), 6, &result, nullptr), RH_INVALID_USAGE);
      const rh_combine_args combine = call.combine_args(result, handle);
      ASSERT_EQ(rh_combine(g, &combine, nullptr), RH_OK) << rh_last_error();
      for (std::size_t i = 0; i < call.y.size(); ++i) ASSERT_EQ(call.y[i], 2 * call.x[i]);
    }
    good_round(g);
  });
}

// With two dispatches of one handle in flight, the place is that of the one that waits for it.
TEST_P(PlaceTooSmall, OfTheOlderOfTwoCachedOnes) {
  cluster_.run({0, last_host()}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    rh_group* const g = group.get();
    SmallCall call;
    Handle owner = group.dispatch(call.args).second;
    std::array<std::vector<float>, 2> places;
    std::array<rh_dispatch_result, 2> results{make<rh_dispatch_result>(), make<rh_dispatch_result>()};
    std::array<rh_event*, 2> events{};
    for (std::size_t i = 0; i < 2; ++i) {
      rh_handle* handle = nullptr;
      ASSERT_EQ(dispatch_into(g, call, places[i], i == 0 ? 5 : 6, results[i], &handle, &events[i], owner.get()), RH_OK)
          << rh_last_error();
    }
    ASSERT_EQ(rh_event_wait(events[0], 30'000), RH_LIMIT_EXCEEDED) << rh_last_error();
    auto result = make<rh_dispatch_result>();
    ASSERT_EQ(rh_dispatch_run(g, owner.get(), places[0].data(), 6, &result, nullptr), RH_OK) << rh_last_error();
    EXPECT_EQ(result.rows, places[0].data());
    ASSERT_EQ(rh_event_wait(events[1], 30'000), RH_OK) << rh_last_error();
    EXPECT_EQ(results[1].rows, places[1].data());
    EXPECT_EQ(places[0], places[1]);
    good_round(g);
  });
}

// Its handle is gone before anybody can know that the place is too small: the others get their rows all the same.
TEST_P(PlaceTooSmall, OfAHandleThatWasReleasedBefore) {
  for (const bool cached : {false, true}) {
    std::promise<void> released;
    const std::shared_future<void> after = released.get_future().share();
    cluster_.run({0, last_host()}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, small_config(2, rank));
      rh_group* const g = group.get();
      SmallCall call;
      std::vector<float> place;
      Handle owner;
      if (cached) owner = group.dispatch(call.args).second;
      auto result = make<rh_dispatch_result>();
      rh_handle* handle = nullptr;
      if (rank == 0) {
        rh_event* event = nullptr;
        ASSERT_EQ(dispatch_into(g, call, place, 5, result, &handle, &event, owner.get()), RH_OK) << rh_last_error();
        if (!cached) owner = Handle(handle);
        owner.release();
        released.set_value();
        EXPECT_EQ(rh_event_wait(event, 30'000), RH_LIMIT_EXCEEDED) << rh_last_error();
        EXPECT_NE(std::string(rh_last_error()).find("5 rows, this rank receives 6"), std::string::npos);
        EXPECT_NE(std::string(rh_last_error()).find("dropped"), std::string::npos) << rh_last_error();
      } else {
        after.wait();
        ASSERT_EQ(dispatch_into(g, call, place, 6, result, &handle, nullptr, owner.get()), RH_OK) << rh_last_error();
        if (!cached) owner = Handle(handle);
        EXPECT_EQ(result.row_count, 6U);
      }
      good_round(g);
    });
  }
}

// In C++ the exception leaves nobody with the handle: it is released, and the others get their rows, although the
// caller has its memory back.
TEST_P(PlaceTooSmall, InCppKeepsNoHandle) {
  cluster_.run({0, last_host()}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    auto config = small_config(2, rank);
    config.max_handles = 1;
    const Group group(session, id, config);
    SmallCall call;
    std::vector<float> place(6 * kSmallHidden);
    call.args.out = place.data();
    call.args.out_rows = rank == 0 ? 5 : 6;
    if (rank == 0) {
      try {
        group.dispatch(call.args);
        ADD_FAILURE() << "the place was large enough";
      } catch (const Error& e) {
        EXPECT_EQ(e.status(), RH_LIMIT_EXCEEDED) << e.what();
      }
      std::fill(call.x.begin(), call.x.end(), -1.0F);
      std::fill(call.side.begin(), call.side.end(), std::uint8_t{99});
    } else {
      const auto [got, handle] = group.dispatch(call.args);
      ASSERT_EQ(got.row_count, 6U);
      const auto* const side = static_cast<const std::uint8_t*>(got.side);
      for (std::uint32_t i = 0; i < 6; ++i) {
        EXPECT_EQ(place[i * kSmallHidden], static_cast<float>(got.row_token[i] + 1)) << "of rank " << got.row_rank[i];
        EXPECT_EQ(side[i * kSmallSide], 7) << "of rank " << got.row_rank[i];
      }
    }
    good_round(group.get());
  });
}

// Both wait for their places, and two threads name them: each gets a dispatch of its own.
TEST_P(PlaceTooSmall, OfTwoThatTwoThreadsRun) {
  cluster_.run({0, last_host()}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    rh_group* const g = group.get();
    SmallCall call;
    const Handle owner = group.dispatch(call.args).second;
    for (int round = 0; round < 1000 && !HasFailure(); ++round) {
      std::array<std::vector<float>, 2> places;
      std::array<rh_dispatch_result, 2> results{make<rh_dispatch_result>(), make<rh_dispatch_result>()};
      std::array<rh_event*, 2> events{};
      for (std::size_t i = 0; i < 2; ++i) {
        rh_handle* handle = nullptr;
        ASSERT_EQ(dispatch_into(g, call, places[i], 1, results[i], &handle, &events[i], owner.get()), RH_OK);
      }
      for (rh_event* event : events) ASSERT_EQ(rh_event_wait(event, 30'000), RH_LIMIT_EXCEEDED) << rh_last_error();
      std::atomic<int> ready{0};
      const auto run = [&](std::size_t i) {
        ++ready;
        while (ready < 2) std::this_thread::yield();
        EXPECT_EQ(rh_dispatch_run(g, owner.get(), places[i].data(), 6, &results[i], nullptr), RH_OK) << rh_last_error();
        EXPECT_EQ(results[i].rows, places[i].data());
      };
      std::thread other(run, 0);
      run(1);
      other.join();
    }
    good_round(g);
  });
}

// The younger one would wait for the older, which waits for this caller.
TEST_P(PlaceTooSmall, TheYoungerOfTwoIsNotRunByABlockingCall) {
  cluster_.run({0, last_host()}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    rh_group* const g = group.get();
    SmallCall call;
    std::array<std::vector<float>, 2> places;
    std::array<rh_dispatch_result, 2> results{make<rh_dispatch_result>(), make<rh_dispatch_result>()};
    std::array<rh_event*, 2> events{};
    std::array<Handle, 2> handles;
    for (std::size_t i = 0; i < 2; ++i) {
      rh_handle* handle = nullptr;
      ASSERT_EQ(dispatch_into(g, call, places[i], 1, results[i], &handle, &events[i]), RH_OK) << rh_last_error();
      handles[i] = Handle(handle);
    }
    for (rh_event* event : events) ASSERT_EQ(rh_event_wait(event, 30'000), RH_LIMIT_EXCEEDED) << rh_last_error();
    expect_refused(g, "younger", rh_dispatch_run(g, handles[1].get(), nullptr, 0, &results[1], nullptr),
                   RH_INVALID_USAGE, {"op 1", "not run"}, 0);
    rh_event* younger = nullptr;
    ASSERT_EQ(rh_dispatch_run(g, handles[1].get(), nullptr, 0, &results[1], &younger), RH_OK) << rh_last_error();
    ASSERT_EQ(rh_dispatch_run(g, handles[0].get(), nullptr, 0, &results[0], nullptr), RH_OK) << rh_last_error();
    ASSERT_EQ(rh_event_wait(younger, 30'000), RH_OK) << rh_last_error();
    for (const rh_dispatch_result& result : results) EXPECT_EQ(result.row_count, 6U);
    good_round(g);
  });
}

// Whatever comes first, the event says that the rows are not there.
TEST_P(PlaceTooSmall, OfAHandleThatIsReleasedWhileTheEventIsWaitedFor) {
  cluster_.run({0, last_host()}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    rh_group* const g = group.get();
    SmallCall call;
    std::vector<float> place;
    for (int round = 0; round < 300 && !HasFailure(); ++round) {
      auto result = make<rh_dispatch_result>();
      rh_handle* handle = nullptr;
      rh_event* event = nullptr;
      ASSERT_EQ(dispatch_into(g, call, place, 1, result, &handle, &event), RH_OK) << rh_last_error();
      std::thread other([&] { EXPECT_EQ(rh_handle_release(handle), RH_OK) << rh_last_error(); });
      EXPECT_EQ(rh_event_wait(event, 30'000), RH_LIMIT_EXCEEDED) << "round " << round;
      other.join();
    }
    good_round(g);
  });
}

// The handle stays its owner's: the dispatch has gone through, and the next call is a good one.
TEST_P(PlaceTooSmall, InCppOfACachedDispatch) {
  cluster_.run({0, last_host()}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    std::vector<float> place(6 * kSmallHidden);
    const Handle owner = group.dispatch(call.args).second;
    rh_dispatch_args args = call.args;
    args.cached = owner.get();
    args.out = place.data();
    args.out_rows = rank == 0 ? 5 : 6;
    try {
      EXPECT_EQ(group.dispatch(args).first.row_count, 6U);
      EXPECT_EQ(rank, 1U) << "the place was too small";
    } catch (const Error& e) {
      EXPECT_EQ(rank, 0U);
      EXPECT_EQ(e.status(), RH_LIMIT_EXCEEDED) << e.what();
      EXPECT_NE(std::string(e.what()).find("5 rows"), std::string::npos) << e.what();
    }
    good_round(group.get());
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, PlaceTooSmall, refusal_hosts(), refusal_name);

}  // namespace
}  // namespace railhead::test
