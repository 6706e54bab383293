// The smallest whole: one rank, one host, two hosts.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace railhead::test
