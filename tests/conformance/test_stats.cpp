// rh_group_stats: rows and bytes are the reference's, and the time that a rank spends waiting for a late one is told
// from the time that the operation takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <set>
#include <thread>

#include "ipc/clock.hpp"
#include "ipc/layout/shape.hpp"
#include "ipc/wire.hpp"
#include "tests/conformance/refusals.hpp"
#include "tests/conformance/waits.hpp"
#include "tests/support/case_runner.hpp"

namespace railhead::test {
namespace {

constexpr std::uint32_t kRanks = 6;
constexpr std::uint32_t kDispatch = 1;
constexpr std::uint32_t kCombine = 2;

class Stats : public testing::TestWithParam<std::uint32_t> {
 protected:
  static std::vector<std::uint16_t> hosts() { return in_turns(kRanks, GetParam()); }
  Cluster cluster_{{.hosts = GetParam()}};
};

// What the reference says that a rank's tokens make.
struct Work {
  std::size_t placements = 0;  // rows of layout rank: (token, receiving rank)
  std::size_t crossings = 0;   // (token, other host)
};

Work work_of(const reference::Case& test, std::uint32_t rank) {
  Work out;
  for (std::uint32_t token = 0; token < test.inputs[rank].tokens; ++token) {
    std::set<std::uint16_t> ranks;
    std::set<std::uint16_t> domains;
    for (const reference::Use& use : reference::uses_of(test, rank, token)) {
      ranks.insert(test.rank_of_expert[use.expert]);
      domains.insert(test.domain_of_rank[test.rank_of_expert[use.expert]]);
    }
    domains.erase(test.domain_of_rank[rank]);
    out.placements += ranks.size();
    out.crossings += domains.size();
  }
  return out;
}

// So many records of this stride, each chunk of them behind a header: how many chunks is the product's choice.
void expect_chunks_of(std::size_t records, std::size_t stride, std::uint64_t bytes, const std::string& what) {
  constexpr std::size_t kHeader = sizeof(ipc::ChunkHeader);
  ASSERT_GE(bytes, records * stride) << what;
  const std::uint64_t headers = bytes - records * stride;
  EXPECT_EQ(headers % kHeader, 0U) << what;
  EXPECT_EQ(headers != 0, records != 0) << what;
  EXPECT_LE(headers, records * kHeader) << what;
}

TEST_P(Stats, RowsAndBytesAreThoseOfTheReference) {
  constexpr std::uint32_t kRounds = 5;
  CaseSpec spec;
  spec.host_of_rank = hosts();
  spec.tokens = {40, 0, 7, 33, 1, 64};
  spec.experts = 13;
  spec.topk = 4;
  spec.side_bytes = 8;
  spec.rounds = kRounds;
  ipc::GroupParams params;
  params.ranks = kRanks;
  params.topk = spec.topk;
  params.hidden = spec.hidden;
  params.side_bytes = spec.side_bytes;
  params.experts = spec.experts;
  const ipc::GroupShape shape(params, {1, spec.host_of_rank});
  const std::size_t bf16 = 2;
  std::vector<Expectation> expected;
  for (std::uint32_t round = 0; round < kRounds; ++round) expected.push_back(expect(spec, round));
  std::array<std::vector<rh_op_stats>, kRanks> stats;
  cluster_.run(spec.host_of_rank, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, group_config(spec, rank, {}));
    EXPECT_TRUE(group.stats().empty());
    for (const Expectation& round : expected) run_round(group, rank, spec, round, CallStyle::blocking);
    stats[rank] = group.stats();
  });
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const reference::Case& test = expected[round].test;
    Work all;
    std::uint64_t summed = 0;
    std::uint64_t partial_bytes = 0;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const std::string what = "round " + std::to_string(round) + " rank " + std::to_string(rank);
      ASSERT_EQ(stats[rank].size(), 2 * kRounds) << what;
      const rh_op_stats& dispatch = stats[rank][2 * (kRounds - round) - 1];
      const rh_op_stats& combine = stats[rank][2 * (kRounds - round) - 2];
      EXPECT_EQ(dispatch.size, sizeof(rh_op_stats)) << what;
      EXPECT_EQ(dispatch.op, 2 * round + 1) << what;
      EXPECT_EQ(combine.op, 2 * round + 2) << what;
      EXPECT_EQ(dispatch.kind, kDispatch) << what;
      EXPECT_EQ(combine.kind, kCombine) << what;
      EXPECT_EQ(dispatch.rows, expected[round].received[rank].received) << what;
      const Work work = work_of(test, rank);
      expect_chunks_of(work.crossings, shape.dispatch_record_bytes(bf16), dispatch.rail_bytes, what);
      if (GetParam() == 1) {
        EXPECT_EQ(combine.rows, work.placements) << what;
      }
      all.placements += work.placements;
      all.crossings += work.crossings;
      summed += combine.rows;
      partial_bytes += combine.rail_bytes;
    }
    // Between hosts a forwarder sums for others: who it is, is the product's choice.
    EXPECT_EQ(summed, all.placements) << round;
    expect_chunks_of(all.crossings, shape.combine_record_bytes(bf16), partial_bytes, std::to_string(round));
    EXPECT_EQ(all.crossings != 0, GetParam() > 1);
  }
}

TEST_P(Stats, TheNewestOnesAreGiven) {
  cluster_.run({0, static_cast<std::uint16_t>(GetParam() - 1)},
               [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
                 const Group group(session, id, small_config(2, rank));
                 for (int round = 0; round < 40; ++round) good_round(group.get());
                 std::vector<rh_op_stats> out(100);
                 std::size_t count = out.size();
                 ASSERT_EQ(rh_group_stats(group.get(), out.data(), &count), RH_OK);
                 ASSERT_EQ(count, 64U);
                 for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[i].op, 80 - i);
                 count = 3;
                 ASSERT_EQ(rh_group_stats(group.get(), out.data(), &count), RH_OK);
                 EXPECT_EQ(count, 3U);
                 EXPECT_EQ(out[2].op, 78U);
                 count = 0;
                 EXPECT_EQ(rh_group_stats(group.get(), nullptr, &count), RH_OK);
                 EXPECT_EQ(rh_group_stats(group.get(), out.data(), nullptr), RH_INVALID_ARGUMENT);
                 count = 1;
                 EXPECT_EQ(rh_group_stats(group.get(), nullptr, &count), RH_INVALID_ARGUMENT);
               });
}

// Structs of another version of the header: each is written as far as it goes, and no further.
TEST_P(Stats, TheCallersSizeIsTheStep) {
  constexpr std::size_t kLonger = sizeof(rh_op_stats) + 24;
  constexpr std::size_t kShorter = offsetof(rh_op_stats, rows);
  cluster_.run({0, static_cast<std::uint16_t>(GetParam() - 1)}, [&](std::uint32_t rank, const Session& session,
                                                                    const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    good_round(group.get());
    for (const std::size_t step : {kLonger, kShorter}) {
      std::vector<unsigned char> memory(3 * kLonger, 0xee);
      std::memcpy(memory.data(), &step, sizeof(step));
      auto* const stats = reinterpret_cast<rh_op_stats*>(memory.data());
      std::size_t count = 2;
      ASSERT_EQ(rh_group_stats(group.get(), stats, &count), RH_OK) << rh_last_error();
      ASSERT_EQ(count, 2U);
      for (std::size_t i = 0; i < count; ++i) {
        rh_op_stats got{};
        std::memcpy(&got, memory.data() + i * step, std::min(step, sizeof(got)));
        EXPECT_EQ(got.size, step);
        EXPECT_EQ(got.op, 2 - i);
      }
      EXPECT_EQ(memory[2 * step], 0xee);
    }
    for (const std::size_t wrong : {std::size_t{7}, std::size_t{4097}, SIZE_MAX}) {
      auto stats = make<rh_op_stats>();
      stats.size = wrong;
      std::size_t count = 1;
      EXPECT_EQ(rh_group_stats(group.get(), &stats, &count), RH_INVALID_ARGUMENT);
      EXPECT_NE(std::string(rh_last_error()).find("stats[0].size is " + std::to_string(wrong)), std::string::npos)
          << rh_last_error();
    }
  });
}

// When a rank called, when its call had returned, and when it saw the end.
struct Times {
  std::uint64_t before = 0, called = 0, seen = 0;
};

// One operation in which one rank calls last: not before every host knows the calls of all others.
class LateCall {
 public:
  LateCall(Cluster& cluster, std::uint32_t late, std::uint64_t op, std::set<std::uint32_t> hosts)
      : cluster_(cluster), late_(late), op_(op), hosts_(std::move(hosts)) {}

  template <class Call>
  void run(std::uint32_t rank, Call call) {
    using namespace std::chrono_literals;
    if (rank == late_) {
      for (const std::uint32_t host : hosts_) {
        EXPECT_TRUE(eventually([&] { return waits_for_calls(cluster_.socket(host), op_, kRanks - 1); }, 20s))
            << "host " << host << ", op " << op_;
      }
      known_ = ipc::steady_ns();
      std::this_thread::sleep_for(20ms);  // what the others' wait must show
    }
    Times& t = times_[rank];
    t.before = ipc::steady_ns();
    Event event = call();
    t.called = ipc::steady_ns();
    event.wait();
    t.seen = ipc::steady_ns();
    all_seen_.arrive_and_wait();
  }

  void check(std::uint32_t rank, const rh_op_stats& got, bool late_is_known) const {
    const std::string what = "op " + std::to_string(op_) + " rank " + std::to_string(rank);
    const Times& own = times_[rank];
    const Times& late = times_[late_];
    ASSERT_EQ(got.op, op_) << what;
    EXPECT_EQ(got.wait_ns + got.transfer_ns, got.total_ns) << what;
    EXPECT_LE(got.total_ns, own.seen - own.before) << what;
    if (late_is_known) {
      EXPECT_EQ(got.last_rank, static_cast<std::int32_t>(late_)) << what;
    }
    if (rank == late_) {
      EXPECT_LE(got.wait_ns, late_is_known ? 0 : own.seen - own.before) << what;
      return;
    }
    // Where the daemon has not said so, only this rank's own clock says by when it had called.
    const std::uint64_t had_called = late_is_known ? known_ : std::min(own.called, late.before);
    EXPECT_GE(got.wait_ns, late.before - had_called) << what;
    EXPECT_LE(got.transfer_ns, own.seen - late.before) << what;
  }

 private:
  Cluster& cluster_;
  std::uint32_t late_;
  std::uint64_t op_;
  std::set<std::uint32_t> hosts_;
  std::uint64_t known_ = 0;
  std::array<Times, kRanks> times_{};
  std::barrier<> all_seen_{kRanks};
};

TEST_P(Stats, ALateRankIsNamedAndItsDelayIsWaitAndNotTransfer) {
  constexpr std::uint32_t kLateDispatch = 3;
  constexpr std::uint32_t kLateCombine = 4;
  const auto host_of = hosts();
  LateCall dispatch(cluster_, kLateDispatch, 3, {host_of.begin(), host_of.end()});
  // Other hosts combine what they can before they ask for the calls of all.
  LateCall combine(cluster_, kLateCombine, 4, {host_of[kLateCombine]});
  cluster_.run(host_of, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(kRanks, rank));
    good_round(group.get());
    SmallCall call;
    auto result = make<rh_dispatch_result>();
    Handle handle;
    dispatch.run(rank, [&] {
      auto [event, made] = group.dispatch_async(call.args, result);
      handle = std::move(made);
      return std::move(event);
    });
    combine.run(rank, [&] { return group.combine_async(call.combine_args(result, handle.get())); });
    const auto stats = group.stats();
    ASSERT_EQ(stats.size(), 4U);
    dispatch.check(rank, stats[1], true);
    combine.check(rank, stats[0], host_of[rank] == host_of[kLateCombine]);
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, Stats, testing::Values(1U, 2U), [](const auto& i) { return std::to_string(i.param); });

}  // namespace
}  // namespace railhead::test
