// rh_dispatch_run changes what others wait for: whoever waits looks again at once, not at its next tick.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "ipc/wait.hpp"
#include "tests/conformance/refusals.hpp"

namespace railhead::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Operation 2 waits behind operation 1, which is planned. Its waiter steps both, so nobody else does, and nothing but
// the run can wake it before its tick.
Clock::duration run_to_wake(rh_group* group) {
  SmallCall first;
  SmallCall second;
  auto first_result = make<rh_dispatch_result>();
  auto second_result = make<rh_dispatch_result>();
  rh_handle* planned = nullptr;
  rh_handle* handle = nullptr;
  rh_event* event = nullptr;
  rh_event* run = nullptr;
  std::uint64_t rows = 0;
  EXPECT_EQ(rh_dispatch_plan(group, &first.args, &rows, &planned), RH_OK) << rh_last_error();
  EXPECT_EQ(rh_dispatch(group, &second.args, &second_result, &handle, &event), RH_OK) << rh_last_error();
  Clock::time_point woken;
  std::thread waiter([&] {
    EXPECT_EQ(rh_event_wait(event, UINT64_MAX), RH_OK) << rh_last_error();
    woken = Clock::now();
  });
  std::this_thread::sleep_for(10ms);  // the waiter is to sleep by then, which nothing shows
  const Clock::time_point called = Clock::now();
  EXPECT_EQ(rh_dispatch_run(group, planned, nullptr, 0, &first_result, &run), RH_OK) << rh_last_error();
  waiter.join();
  EXPECT_EQ(rh_event_wait(run, UINT64_MAX), RH_OK) << rh_last_error();
  EXPECT_EQ(rh_handle_release(planned), RH_OK);
  EXPECT_EQ(rh_handle_release(handle), RH_OK);
  return woken - called;
}

TEST(DispatchRun, WakesAWaiterAtOnce) {
  Cluster cluster({.hosts = 1});
  cluster.run({0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(1, rank));
    std::array<Clock::duration, 15> took{};
    for (Clock::duration& one : took) one = run_to_wake(group.get());
    std::nth_element(took.begin(), took.begin() + took.size() / 2, took.end());
    // Without the wake-up nearly a whole tick passes each time.
    EXPECT_LT(took[took.size() / 2], ipc::kMaxTick / 2);
  });
}

}  // namespace
}  // namespace railhead::test
