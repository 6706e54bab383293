// Many rounds with random delays: stamped rows, cached handles, several operations in flight, blocking, planned and
// asynchronous calls mixed; several groups and jobs at once.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/conformance/stamped.hpp"
#include "tests/support/case_runner.hpp"
#include "tests/support/faults.hpp"
#include "tests/support/lane.hpp"

namespace railhead::test {
namespace {

// 10,000 rounds in the long form; the quick lane does 1,000, which is 2,200 operations.
constexpr std::uint32_t kQuickRounds = 1000;
constexpr std::uint32_t kAllRounds = 10'000;
constexpr std::uint32_t kQuickFaultRounds = 300;
constexpr std::uint32_t kQuickNarrowRounds = 400;  // each of a hundred chunks and more

void stamped(Cluster& cluster, const std::vector<std::uint16_t>& hosts, StampedJob job, std::uint32_t count) {
  job.ranks = static_cast<std::uint32_t>(hosts.size());
  cluster.run(hosts, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, job.config(rank));
    StampedRank(group, rank, job).run(0, count);  // throws at the first wrong row, which fails the test
    EXPECT_GE(group.info().completed, 2 * std::uint64_t{count}) << "every round is a dispatch and a combine at least";
  });
}

TEST(Rounds, OneHostTwoInFlight) {
  Cluster cluster({.hosts = 1});
  stamped(cluster, {0, 0, 0, 0}, {.depth = 2, .seed = seed(11)}, rounds(kQuickRounds, kAllRounds));
}

TEST(Rounds, OneHostOneInFlight) {
  Cluster cluster({.hosts = 1});
  stamped(cluster, {0, 0, 0}, {.layout = RH_LAYOUT_EXPERT, .depth = 1, .seed = seed(12)},
          rounds(kQuickRounds, kAllRounds));
}

TEST(Rounds, TwoHostsTwoInFlight) {
  Cluster cluster({.hosts = 2});
  stamped(cluster, {0, 1, 0, 1}, {.layout = RH_LAYOUT_EXPERT, .depth = 2, .seed = seed(13)},
          rounds(kQuickRounds, kAllRounds));
}

TEST(Rounds, TwoHostsThreeInFlight) {
  Cluster cluster({.hosts = 2});
  stamped(cluster, {0, 1, 1}, {.depth = 3, .seed = seed(14)}, rounds(kQuickRounds, kAllRounds));
}

TEST(Rounds, ThreeHostsOneInFlight) {
  Cluster cluster({.hosts = 3});
  stamped(cluster, {2, 0, 1, 0}, {.depth = 1, .seed = seed(15)}, rounds(kQuickRounds, kAllRounds));
}

// Every limit of the rail at its least, and more records than a ring or a step can hold.
TEST(Rounds, ThreeChannelsOfOneSlotAndChunksOfOneRecord) {
  Cluster cluster({.hosts = 2});
  stamped(cluster, {0, 1, 0, 1},
          {.layout = RH_LAYOUT_EXPERT,
           .depth = 2,
           .channels = 3,
           .ring_slots = 1,
           .chunk_bytes = 1,
           .most_tokens = 40,
           .seed = seed(18)},
          rounds(kQuickNarrowRounds, kAllRounds));
}

// What must hold over any wire: on one host, on two, and on two whose writes come late, twice and out of order.
struct Where {
  std::uint32_t hosts;
  std::string fault;
};

std::vector<Where> everywhere() {
  return {{1, ""}, {2, ""}, {2, all_faults(31)}};
}

void with_faults(StampedJob job) {
  Cluster cluster({.hosts = 3, .fault = all_faults(32)});
  stamped(cluster, {0, 1, 2, 0}, job, rounds(kQuickFaultRounds, kAllRounds));
}

TEST(Rounds, UnderFaultsOneInFlight) {
  with_faults({.layout = RH_LAYOUT_EXPERT, .depth = 1, .seed = seed(19)});
}

TEST(Rounds, UnderFaultsTwoInFlight) {
  with_faults({.layout = RH_LAYOUT_EXPERT, .depth = 2, .seed = seed(20)});
}

TEST(Rounds, UnderFaultsThreeChannelsOfOneSlot) {
  with_faults({.layout = RH_LAYOUT_EXPERT,
               .depth = 2,
               .channels = 3,
               .ring_slots = 1,
               .chunk_bytes = 1,
               .most_tokens = 10,
               .seed = seed(22)});
}

// Same inputs, same bits, whatever the delays: rows, maps and y of 20 repeats.
TEST(Rounds, TwentyRepeatsGiveTheSameBits) {
  for (const Where& where : everywhere()) {
    const std::uint32_t hosts = where.hosts;
    Cluster cluster({.hosts = hosts, .fault = where.fault});
    CaseSpec spec;
    spec.host_of_rank = {0, static_cast<std::uint16_t>(hosts - 1), 0, static_cast<std::uint16_t>(hosts - 1)};
    spec.layout = reference::Layout::expert;
    spec.tokens = {40, 0, 77, 13};
    spec.topk = 6;
    spec.experts = 13;
    spec.hidden = 130;
    spec.odd.special_values = 0;  // of a NaN only the being one is promised
    const Expectation expected = expect(spec, 0);
    cluster.run(spec.host_of_rank, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, group_config(spec, rank, {}));
      Dice dice(seed(16) + rank);
      for (int repeat = 0; repeat < 20; ++repeat) {
        for (std::size_t i = dice.below(4); i > 0; --i) std::this_thread::yield();
        run_round(group, rank, spec, expected, static_cast<CallStyle>(dice.below(5)));
      }
    });
  }
}

CaseSpec group_of(std::vector<std::uint16_t> hosts, std::uint32_t hidden, std::uint32_t topk) {
  CaseSpec spec;
  spec.tokens.assign(hosts.size(), 9);
  spec.host_of_rank = std::move(hosts);
  spec.experts = 16;
  spec.hidden = hidden;
  spec.topk = topk;
  return spec;
}

// B36: one process opens two groups and uses them from two threads; one closes, the other goes on.
TEST(Rounds, TwoGroupsInOneProcessFromTwoThreads) {
  for (const Where& where : everywhere()) {
    Cluster cluster({.hosts = where.hosts, .fault = where.fault});
    const auto other = static_cast<std::uint16_t>(where.hosts - 1);
    const CaseSpec a = group_of({0, other, other}, 7168, 8);
    const CaseSpec b = group_of({0, other, other}, 2048, 4);
    const Expectation expected_a = expect(a, 0);
    const Expectation expected_b = expect(b, 0);
    std::promise<UniqueId> made;
    const std::shared_future<UniqueId> id_b = made.get_future().share();
    cluster.run(a.host_of_rank, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      if (rank == 0) made.set_value(session.unique_id());
      std::promise<void> closed;
      auto work_a = std::async(std::launch::async, [&] {
        {
          const Group group(session, id, group_config(a, rank, {}));
          for (int i = 0; i < 12; ++i) run_round(group, rank, a, expected_a, static_cast<CallStyle>(i % 6));
        }
        closed.set_value();
      });
      const Group group(session, id_b.get(), group_config(b, rank, {}));
      for (int i = 0; i < 12; ++i) run_round(group, rank, b, expected_b, static_cast<CallStyle>(i % 6));
      work_a.get();
      closed.get_future().get();
      for (int i = 0; i < 6; ++i) run_round(group, rank, b, expected_b, static_cast<CallStyle>(i % 6));
    });
  }
}

// B35: two jobs with the same rank ids and shapes under the same daemons see no row of each other.
void two_jobs(const std::string& fault, std::uint32_t count) {
  Cluster cluster({.hosts = 2, .fault = fault});
  const std::vector<std::uint16_t> hosts = {0, 1, 0};
  auto second = std::async(std::launch::async, [&] { stamped(cluster, hosts, {.job = 2, .seed = seed(17)}, count); });
  stamped(cluster, hosts, {.job = 1, .seed = seed(17)}, count);
  second.get();
}

TEST(Rounds, TwoJobsUnderTheSameDaemons) {
  two_jobs("", rounds(200, 1000));
}

TEST(Rounds, TwoJobsUnderTheSameDaemonsAndFaults) {
  two_jobs(all_faults(33), rounds(kQuickFaultRounds, 1000));
}

}  // namespace
}  // namespace railhead::test
