// The same conformance over other fabrics and endpoints, and with injected faults: writes and immediates that come
// late, out of order or twice.
#include <gtest/gtest.h>

#include <future>
#include <iostream>
#include <vector>

#include "tests/conformance/cover_cases.hpp"
#include "tests/conformance/stamped.hpp"
#include "tests/support/faults.hpp"
#include "tests/support/lane.hpp"

namespace railhead::test {
namespace {

struct Wire {
  const char* name;
  const char* provider;
  const char* endpoint;
  std::string fault;
};

void PrintTo(const Wire& wire, std::ostream* out) {
  *out << wire.name;
}

class Fabrics : public testing::TestWithParam<Wire> {};

ClusterOptions cluster_of(const Wire& wire, std::uint32_t hosts) {
  ClusterOptions options;
  options.hosts = hosts;
  options.provider = wire.provider;
  options.endpoint = wire.endpoint;
  options.fault = wire.fault;
  return options;
}

// Cases of the cover that cross hosts: all in the long form, else a handful on two and on three hosts.
TEST_P(Fabrics, CasesOfTheCover) {
  const std::uint64_t chosen_seed = seed(20260102);
  const std::uint64_t cap = 2ULL << 20;
  const Cover cover = make_cover(chosen_seed, cap);
  const std::size_t stride = soak() ? 1 : kThreadSanitizer ? 60 : 15;
  std::size_t ran = 0;
  for (const std::uint32_t hosts : {2U, 3U}) {
    Cluster cluster(cluster_of(GetParam(), hosts));
    std::size_t seen = 0;
    for (const CoverCase& c : cover.cases) {
      if (c.hosts != hosts || seen++ % stride != 0) continue;
      ASSERT_NO_THROW(run_case(cluster, c.spec, c.styles)) << c.spec.describe();
      ++ran;
    }
  }
  std::cout << cover.summary(chosen_seed, cap) << "; " << ran << " of them\n";
}

TEST_P(Fabrics, StampedRounds) {
  const std::vector<std::uint16_t> hosts = {0, 1, 2, 0};
  StampedJob job;
  job.ranks = static_cast<std::uint32_t>(hosts.size());
  job.depth = 3;
  job.seed = seed(21);
  Cluster cluster(cluster_of(GetParam(), 3));
  cluster.run(hosts, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, job.config(rank));
    StampedRank(group, rank, job).run(0, rounds(100, 10'000));
  });
}

// Groups at once, each over the hosts of one of `shapes`.
void run_side_by_side(Cluster& cluster, std::uint32_t groups, const std::vector<std::vector<std::uint16_t>>& shapes) {
  std::vector<std::future<void>> running;
  for (std::uint32_t g = 0; g < groups; ++g) {
    running.push_back(std::async(std::launch::async, [&cluster, &hosts = shapes[g % shapes.size()], g] {
      StampedJob job;
      job.ranks = static_cast<std::uint32_t>(hosts.size());
      job.job = g + 1;
      job.seed = seed(31) + g;
      cluster.run(hosts, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
        const Group group(session, id, job.config(rank));
        StampedRank(group, rank, job).run(0, rounds(20, 1'000));
      });
    }));
  }
  for (auto& group : running) EXPECT_NO_THROW(group.get());
}

TEST(SeveralProxies, GroupsSideBySide) {
  ClusterOptions options;
  options.hosts = 2;
  options.proxies = {3};
  Cluster cluster(options);
  run_side_by_side(cluster, 8, {{0, 1, 1}});
}

// The same two hosts then use one proxy in one group and another in the next.
TEST(SeveralProxies, HostsWithUnequalNumbers) {
  ClusterOptions options;
  options.hosts = 3;
  options.proxies = {1, 2, 3};
  Cluster cluster(options);
  run_side_by_side(cluster, 12, {{0, 1, 1}, {1, 2, 2}, {2, 0, 1}});
}

INSTANTIATE_TEST_SUITE_P(Wires, Fabrics,
                         testing::Values(Wire{"TcpRdm", "tcp", "rdm", ""}, Wire{"Loopback", "loopback", "msg", ""},
                                         Wire{"TcpReorder", "tcp", "msg", "seed=1,reorder=8"},
                                         Wire{"TcpDelay", "tcp", "msg", "seed=2,delay=16"},
                                         Wire{"TcpDup", "tcp", "msg", "seed=3,dup=0.3"},
                                         Wire{"TcpResend", "tcp", "msg", "seed=4,resend=0.3"},
                                         Wire{"TcpAll", "tcp", "msg", all_faults(5)},
                                         Wire{"TcpRdmAll", "tcp", "rdm", all_faults(6)},
                                         Wire{"LoopbackAll", "loopback", "msg", all_faults(7)}),
                         [](const testing::TestParamInfo<Wire>& wire) { return std::string(wire.param.name); });

}  // namespace
}  // namespace railhead::test
