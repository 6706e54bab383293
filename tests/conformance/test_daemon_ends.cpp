// A daemon that ends while its peers still write to it: its proxies end before the memory of its groups does.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/refusals.hpp"

namespace railhead::test {
namespace {

constexpr std::uint32_t kTokens = 2000;
constexpr std::uint32_t kHidden = 2048;

class DaemonEnds : public testing::TestWithParam<const char*> {};

// Every token is a chunk, and a sender has 256 of them under way that leave slowly: they go on arriving for longer than
// the daemon takes to end.
rh_group_config slow_config(std::uint32_t rank) {
  rh_group_config config = small_config(2, rank);
  config.hidden = kHidden;
  config.side_bytes = 0;
  config.ring_slots = 256;
  config.chunk_bytes = 1;
  return config;
}

TEST_P(DaemonEnds, WhileItsPeersStillWriteToIt) {
  for (int i = 0; i < 5; ++i) {
    Cluster cluster({.hosts = 2, .provider = GetParam(), .fault = "slow=60"});
    std::atomic<int> called = 0;
    std::thread end([&] {
      while (called < 2) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20 + 10 * i));  // somewhere inside
      cluster.stop(1);
    });
    cluster.run({0, 1}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, slow_config(rank));
      const std::vector<float> x(std::size_t{kTokens} * kHidden, 1);
      const std::vector<std::int64_t> ids(std::size_t{kTokens} * kSmallTopk, rank == 0 ? 2 : 0);  // of the other rank
      SmallCall call;
      call.args.x = x.data();
      call.args.tokens = kTokens;
      call.args.ids = ids.data();
      call.args.side_bytes = 0;
      rh_status status = RH_OK;
      while (status == RH_OK) {
        ++called;
        auto result = make<rh_dispatch_result>();
        rh_handle* handle = nullptr;
        status = rh_dispatch(group.get(), &call.args, &result, &handle, nullptr);
        EXPECT_EQ(rh_handle_release(handle), RH_OK);
      }
      EXPECT_TRUE(status == RH_ABORTED || status == RH_DAEMON_LOST) << rh_status_name(status);
    });
    end.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Fabrics, DaemonEnds, testing::Values("tcp", "loopback"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace railhead::test
