// A group that is closed while another thread of its rank waits in it: the waiter is told, and at once.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/conformance/refusals.hpp"

namespace railhead::test {
namespace {

using namespace std::chrono_literals;

TEST(CloseGroup, EndsTheWaitOfAnotherThread) {
  Cluster cluster({.hosts = 1});
  cluster.run({0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    Group group(session, id, small_config(1, rank));
    SmallCall call;
    std::uint64_t rows = 0;
    rh_handle* planned = nullptr;
    ASSERT_EQ(rh_dispatch_plan(group.get(), &call.args, &rows, &planned), RH_OK) << rh_last_error();
    SmallCall second;
    auto result = make<rh_dispatch_result>();
    rh_handle* handle = nullptr;
    rh_event* event = nullptr;
    ASSERT_EQ(rh_dispatch(group.get(), &second.args, &result, &handle, &event), RH_OK) << rh_last_error();
    rh_status told = RH_OK;
    std::thread waiter([&] { told = rh_event_wait(event, UINT64_MAX); });  // behind the one that nobody runs
    std::this_thread::sleep_for(20ms);                                     // it waits by then, which nothing shows
    const auto closed = std::chrono::steady_clock::now();
    EXPECT_EQ(rh_group_close(group.get()), RH_OK);
    waiter.join();
    EXPECT_EQ(told, RH_ABORTED);
    EXPECT_LT(std::chrono::steady_clock::now() - closed, 5s) << "it waited for the operation's deadline";
  });
}

}  // namespace
}  // namespace railhead::test
