// rh_group_abort: every rank gets the end, who asked for it and why; nothing else ends.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <set>
#include <string>
#include <thread>

#include "tests/conformance/refusals.hpp"
#include "tests/conformance/waits.hpp"

namespace railhead::test {
namespace {

constexpr std::uint32_t kRanks = 4;

class Abort : public testing::TestWithParam<std::uint32_t> {
 protected:
  static std::vector<std::uint16_t> hosts() { return in_turns(kRanks, GetParam()); }
  Cluster cluster_{{.hosts = GetParam()}};
};

std::string by(std::uint32_t rank) {
  return "aborted by rank " + std::to_string(rank) + ": reason of " + std::to_string(rank) + ";";
}

// The sentence of every call from now on; the calls do not wait.
std::string ended_sentence(rh_group* group) {
  EXPECT_EQ(rh_group_status(group), RH_ABORTED) << rh_last_error();
  const std::string sentence = rh_last_error();
  SmallCall call;
  auto result = make<rh_dispatch_result>();
  rh_handle* handle = nullptr;
  std::uint64_t rows = 0;
  rh_event* event = nullptr;
  void* memory = nullptr;
  const auto same = [&](rh_status status, const char* what) {
    EXPECT_EQ(status, RH_ABORTED) << what;
    EXPECT_EQ(rh_last_error(), sentence) << what;
  };
  same(rh_dispatch(group, &call.args, &result, &handle, nullptr), "dispatch");
  same(rh_dispatch(group, &call.args, &result, &handle, &event), "asynchronous dispatch");
  same(rh_dispatch_plan(group, &call.args, &rows, &handle), "plan");
  same(rh_alloc(group, RH_ARENA_COMBINE, 64, &memory), "alloc");
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(event, nullptr);
  EXPECT_EQ(memory, nullptr);
  return sentence;
}

// These ranks abort while the others wait for them in a blocking call, an event, a plan; returns every rank's sentence.
// Before and after, another group of the same ranks works, and so does a new one.
std::array<std::string, kRanks> aborted(Cluster& cluster, const std::vector<std::uint16_t>& hosts,
                                        const std::set<std::uint32_t>& aborting) {
  std::array<std::string, kRanks> out;
  std::barrier all(kRanks);
  std::array<UniqueId, 2> ids{};
  cluster.run(hosts, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    if (rank == 0) {
      for (UniqueId& more : ids) more = session.unique_id();
    }
    all.arrive_and_wait();
    const Group other(session, ids[0], small_config(kRanks, rank));
    const Group group(session, id, small_config(kRanks, rank));
    good_round(group.get());
    SmallCall call;
    auto [result, handle] = group.dispatch(call.args);  // for a combine after the end
    all.arrive_and_wait();
    if (aborting.contains(rank)) {
      EXPECT_EQ(rh_group_abort(group.get(), ("reason of " + std::to_string(rank)).c_str()), RH_OK);
    }
    auto late = make<rh_dispatch_result>();
    rh_handle* none = nullptr;
    rh_event* event = nullptr;
    std::uint64_t rows = 0;
    rh_status status = RH_OK;
    if (rank % 3 == 0) {
      status = rh_dispatch(group.get(), &call.args, &late, &none, nullptr);
    } else if (rank % 3 == 1) {
      status = rh_dispatch(group.get(), &call.args, &late, &none, &event);
      if (status == RH_OK) status = rh_event_wait(event, UINT64_MAX);
    } else {
      status = rh_dispatch_plan(group.get(), &call.args, &rows, &none);
    }
    EXPECT_EQ(status, RH_ABORTED) << rh_last_error();
    out[rank] = rh_last_error();
    EXPECT_EQ(ended_sentence(group.get()), out[rank]);
    const rh_combine_args combine = call.combine_args(result, handle.get());
    EXPECT_EQ(rh_combine(group.get(), &combine, nullptr), RH_ABORTED);
    EXPECT_EQ(rh_last_error(), out[rank]);
    EXPECT_EQ(rh_group_abort(group.get(), "too late"), RH_OK);
    EXPECT_EQ(ended_sentence(group.get()), out[rank]);
    good_round(other.get());
    good_round(Group(session, ids[1], small_config(kRanks, rank)).get());
  });
  return out;
}

TEST_P(Abort, ByOneRankEndsTheGroupWithItsReasonOnAllRanks) {
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (const std::string& sentence : aborted(cluster_, hosts(), {rank})) {
      EXPECT_NE(sentence.find(by(rank)), std::string::npos) << sentence;
      EXPECT_NE(sentence.find("last operation complete on all survivors: 3"), std::string::npos) << sentence;
    }
  }
}

// Which of them is first, each host says for itself; all ranks of a host say the same.
TEST_P(Abort, BySeveralAtOnceNamesOneOfThem) {
  for (const std::set<std::uint32_t>& aborting : {std::set<std::uint32_t>{1, 2}, {0, 1, 2, 3}, {0, 2}}) {
    const auto host_of = hosts();
    const auto sentences = aborted(cluster_, host_of, aborting);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      std::size_t named = 0;
      for (const std::uint32_t r : aborting) named += sentences[rank].find(by(r)) != std::string::npos ? 1 : 0;
      EXPECT_EQ(named, 1U) << sentences[rank];
      for (std::uint32_t peer = 0; peer < rank; ++peer) {
        if (host_of[peer] == host_of[rank]) {
          EXPECT_EQ(sentences[peer], sentences[rank]);
        }
      }
    }
  }
}

TEST_P(Abort, WithoutAReasonSaysSo) {
  cluster_.run({0, static_cast<std::uint16_t>(GetParam() - 1)},
               [](std::uint32_t rank, const Session& session, const UniqueId& id) {
                 const Group group(session, id, small_config(2, rank));
                 if (rank == 1) {
                   EXPECT_EQ(rh_group_abort(group.get(), nullptr), RH_OK);
                 }
                 SmallCall call;
                 auto result = make<rh_dispatch_result>();
                 rh_handle* handle = nullptr;
                 EXPECT_EQ(rh_dispatch(group.get(), &call.args, &result, &handle, nullptr), RH_ABORTED);
                 EXPECT_NE(std::string(rh_last_error()).find("aborted by rank 1: no reason given"), std::string::npos)
                     << rh_last_error();
               });
}

// A watchdog: the thread that makes the calls waits for a rank that makes none.
TEST_P(Abort, ByAnotherThreadThanTheOneThatWaits) {
  std::barrier ended(2);
  cluster_.run({0, static_cast<std::uint16_t>(GetParam() - 1)},
               [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
                 const Group group(session, id, small_config(2, rank));
                 if (rank == 1) {
                   ended.arrive_and_wait();
                   EXPECT_EQ(ended_sentence(group.get()).find("aborted by rank 0: stuck"), 0U);
                   return;
                 }
                 SmallCall call;
                 std::thread waits([&] {
                   auto result = make<rh_dispatch_result>();
                   rh_handle* handle = nullptr;
                   EXPECT_EQ(rh_dispatch(group.get(), &call.args, &result, &handle, nullptr), RH_ABORTED);
                   EXPECT_EQ(std::string(rh_last_error()).find("aborted by rank 0: stuck"), 0U) << rh_last_error();
                 });
                 EXPECT_TRUE(eventually([&] { return waits_for_calls(cluster_.socket(0), 1, 1); }));
                 EXPECT_EQ(rh_group_abort(group.get(), "stuck"), RH_OK);
                 EXPECT_EQ(rh_group_status(group.get()), RH_ABORTED);
                 waits.join();
                 ended.arrive_and_wait();
               });
}

INSTANTIATE_TEST_SUITE_P(Hosts, Abort, testing::Values(1U, 2U), [](const auto& i) { return std::to_string(i.param); });

}  // namespace
}  // namespace railhead::test
