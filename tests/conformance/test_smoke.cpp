// The smallest whole: one rank, one host, two hosts.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/conformance/refusals.hpp"
#include "tests/support/case_runner.hpp"

namespace railhead::test {
namespace {

CaseSpec small(std::vector<std::uint16_t> hosts) {
  CaseSpec spec;
  spec.tokens.assign(hosts.size(), 5);
  spec.host_of_rank = std::move(hosts);
  return spec;
}

TEST(Smoke, OneRank) {
  Cluster cluster({.hosts = 1});
  EXPECT_NO_THROW(run_case(cluster, small({0})));
}

TEST(Smoke, FourRanksOneHost) {
  Cluster cluster({.hosts = 1});
  EXPECT_NO_THROW(run_case(cluster, small({0, 0, 0, 0})));
}

TEST(Smoke, TwoHosts) {
  Cluster cluster({.hosts = 2});
  EXPECT_NO_THROW(run_case(cluster, small({0, 1})));
}

TEST(Smoke, TwoHostsFourRanksEveryStyle) {
  Cluster cluster({.hosts = 2});
  CaseSpec spec = small({0, 1, 0, 1});
  spec.rounds = 12;
  EXPECT_NO_THROW(run_case(cluster, spec,
                           {CallStyle::blocking, CallStyle::planned, CallStyle::async, CallStyle::out_in_arena,
                            CallStyle::out_elsewhere, CallStyle::cached}));
}

// For the backward pass: the routing stays good for further combines.
TEST(Smoke, AHandleCanBeCombinedAgain) {
  Cluster cluster({.hosts = 2});
  cluster.run({0, 1}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    const auto [result, handle] = group.dispatch(call.args);
    for (int again = 0; again < 3; ++again) {
      std::fill(call.y.begin(), call.y.end(), 0.0F);
      group.combine(call.combine_args(result, handle.get()));
      for (std::size_t i = 0; i < call.y.size(); ++i) ASSERT_EQ(call.y[i], 2 * call.x[i]) << i;
    }
  });
}

}  // namespace
}  // namespace railhead::test
