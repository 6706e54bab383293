// Limits of time and memory that are given when a session or a group is made: the largest, the smallest, and those that
// cannot be had.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <string>
#include <vector>

#include "tests/conformance/refusals.hpp"
#include "tests/conformance/waits.hpp"

namespace railhead::test {
namespace {

using namespace std::chrono_literals;

class Creation : public testing::TestWithParam<std::uint32_t> {
 protected:
  static std::vector<std::uint16_t> hosts() { return {0, static_cast<std::uint16_t>(GetParam() - 1)}; }
  Cluster cluster_{{.hosts = GetParam()}};
};

// A group of which some rank is not there yet is known to this daemon.
bool waits_for_ranks(const std::string& socket) {
  epctl::Options options;
  options.socket = socket;
  const auto groups = epctl::snapshot(options, "groups");
  if (!groups) return false;
  return std::any_of((*groups)["groups"].begin(), (*groups)["groups"].end(),
                     [](const Json& group) { return !group.value("missing", Json::array()).empty(); });
}

// A limit that does not fit the clock is no instant one: the other rank joins, and calls, once this one waits for it.
TEST_P(Creation, TheLongestTimesAreLong) {
  constexpr std::uint64_t kYear = std::uint64_t{365} * 86'400'000;
  const std::uint64_t times[] = {0,
                                 100 * kYear,
                                 150 * kYear,
                                 INT64_MAX / 1'000'000 + 1,  // in nanoseconds it is negative
                                 INT64_MAX / 1'000,
                                 INT64_MAX,
                                 UINT64_MAX - 1'000,
                                 UINT64_MAX};
  for (const std::uint64_t ms : times) {
    cluster_.run(hosts(), [&](std::uint32_t rank, const Session&, const UniqueId& id) {
      auto session_config = make<rh_session_config>();
      session_config.daemon = cluster_.socket(hosts()[rank]).c_str();
      session_config.timeout_ms = ms;
      rh_session* session = nullptr;
      ASSERT_EQ(rh_session_open(&session_config, &session), RH_OK) << ms << ": " << rh_last_error();
      rh_group_config config = small_config(2, rank);
      config.join_timeout_ms = ms;
      config.op_timeout_ms = ms;
      rh_group* group = nullptr;
      if (rank == 1) {
        EXPECT_TRUE(eventually([&] { return waits_for_ranks(cluster_.socket(0)); })) << ms;
      }
      ASSERT_EQ(rh_group_create(session, &id, &config, &group), RH_OK) << ms << ": " << rh_last_error();
      SmallCall call;
      auto result = make<rh_dispatch_result>();
      rh_handle* handle = nullptr;
      rh_event* event = nullptr;
      if (rank == 1) {
        EXPECT_TRUE(eventually([&] { return waits_for_calls(cluster_.socket(0), 1, 1); })) << ms;
      }
      ASSERT_EQ(rh_dispatch(group, &call.args, &result, &handle, &event), RH_OK) << ms << ": " << rh_last_error();
      EXPECT_EQ(rh_event_wait(event, std::max<std::uint64_t>(ms, 60'000)), RH_OK) << ms << ": " << rh_last_error();
      EXPECT_EQ(rh_session_close(session), RH_OK);
    });
  }
}

rh_group_info info_of(rh_group* group) {
  auto info = make<rh_group_info>();
  EXPECT_EQ(rh_group_query(group, &info), RH_OK);
  return info;
}

// First segments: of any size, rounded up to the least that is made, grown when a dispatch needs more.
TEST_P(Creation, ArenasAreAtLeastWhatWasAskedForAndGrow) {
  constexpr std::uint64_t kLeast = std::uint64_t{4} << 20;
  struct Sizes {
    std::size_t receive, combine;
    std::uint64_t least_receive, least_combine;
  };
  const Sizes cases[] = {{0, 0, 0, 0},
                         {1, 0, kLeast, 0},
                         {0, 63, 0, kLeast},
                         {kLeast + 1, kLeast + 4097, kLeast + 1, kLeast + 4097},
                         {(std::size_t{16} << 20) - 1, 1, (std::size_t{16} << 20) - 1, kLeast}};
  for (const Sizes& sizes : cases) {
    cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      rh_group_config config = small_config(2, rank);
      config.hidden = 4096;
      config.side_bytes = 0;
      if (rank == 1) config.receive_bytes = sizes.receive;
      if (rank == 1) config.combine_bytes = sizes.combine;
      const Group group(session, id, config);
      const rh_group_info made = info_of(group.get());
      EXPECT_GE(made.receive_bytes, rank == 1 ? sizes.least_receive : 0);
      EXPECT_GE(made.combine_bytes, rank == 1 ? sizes.least_combine : 0);
      if (rank == 0 || sizes.receive == 0) {
        EXPECT_EQ(made.receive_bytes, 0U);
      }
      if (rank == 0 || sizes.combine == 0) {
        EXPECT_EQ(made.combine_bytes, 0U);
      }
      // More rows than any of these holds: 2 x 2048 rows of 8 KiB on the rank that has expert 2.
      const std::vector<std::uint16_t> x(std::size_t{2048} * config.hidden, 0x3f80);
      const std::vector<std::int64_t> ids(std::size_t{2048} * 2, 2);
      rh_dispatch_args args{};
      args.x = x.data();
      args.type = RH_BF16;
      args.tokens = 2048;
      args.ids = ids.data();
      const auto [result, handle] = group.dispatch(args);
      EXPECT_EQ(result.row_count, rank == 1 ? 4096U : 0U);
      if (rank == 1) {
        EXPECT_GE(info_of(group.get()).receive_bytes, std::uint64_t{4096} * 8192);
      }
    });
  }
}

struct TooMuch {
  const char* field;
  std::size_t rh_group_config::*bytes;
};

// It cannot be known before: one rank finds no memory for its arena once all have joined. All are told, and another
// group works.
TEST_P(Creation, AnArenaThatThereIsNoMemoryForEndsTheGroupWithARankAndBothNumbers) {
  for (const TooMuch field : {TooMuch{"railhead-receive", &rh_group_config::receive_bytes},
                              TooMuch{"railhead-combine", &rh_group_config::combine_bytes}}) {
    std::barrier both(2);
    UniqueId next{};
    cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      if (rank == 0) next = session.unique_id();
      rh_group_config config = small_config(2, rank);
      if (rank == 1) config.*field.bytes = std::size_t{1} << 50;
      rh_group* group = nullptr;
      const rh_status created = rh_group_create(session.get(), &id, &config, &group);
      const std::string said = rh_last_error();
      if (rank == 1) {
        EXPECT_EQ(created, RH_OUT_OF_MEMORY) << said;
        for (const char* piece : {field.field, "needs 1125899906842624 bytes", "free"}) {
          EXPECT_NE(said.find(piece), std::string::npos) << said;
        }
        EXPECT_EQ(group, nullptr);
      } else if (created == RH_OK) {
        SmallCall call;
        auto result = make<rh_dispatch_result>();
        rh_handle* handle = nullptr;
        EXPECT_EQ(rh_dispatch(group, &call.args, &result, &handle, nullptr), RH_OUT_OF_MEMORY) << rh_last_error();
        for (const char* piece : {"rank 1", field.field, "needs 1125899906842624 bytes"}) {
          EXPECT_NE(std::string(rh_last_error()).find(piece), std::string::npos) << rh_last_error();
        }
        EXPECT_EQ(rh_group_close(group), RH_OK);
      }
      both.arrive_and_wait();
      good_round(Group(session, next, small_config(2, rank)).get());
    });
  }
}

// It is known before: the id stays good.
TEST_P(Creation, AnArenaThatNoMachineHoldsIsRefusedBeforeItJoins) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 63, std::size_t{1} << 56}) {
      for (const auto field : {&rh_group_config::receive_bytes, &rh_group_config::combine_bytes}) {
        rh_group_config config = small_config(2, rank);
        config.*field = bytes;
        rh_group* group = nullptr;
        EXPECT_EQ(rh_group_create(session.get(), &id, &config, &group), RH_LIMIT_EXCEEDED) << rh_last_error();
        const std::string said = rh_last_error();
        const char* const name = field == &rh_group_config::receive_bytes ? "receive_bytes" : "combine_bytes";
        EXPECT_NE(said.find(name), std::string::npos) << said;
        EXPECT_NE(said.find(std::to_string(bytes)), std::string::npos) << said;
        EXPECT_NE(said.find("72057594037927872"), std::string::npos) << said;
      }
    }
    good_round(Group(session, id, small_config(2, rank)).get());
  });
}

// Every rank finds out by itself, before it hands over its rail.
TEST(CreationOnTwoHosts, ARailThatThereIsNoMemoryForIsNamedAndAnotherGroupWorks) {
  Cluster cluster({.hosts = 2});
  std::barrier both(2);
  UniqueId next{};
  cluster.run({0, 1}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    if (rank == 0) next = session.unique_id();
    rh_group_config config = small_config(2, rank);
    config.chunk_bytes = 1U << 30;
    config.ring_slots = 256;
    config.channels = 64;
    rh_group* group = nullptr;
    EXPECT_EQ(rh_group_create(session.get(), &id, &config, &group), RH_OUT_OF_MEMORY) << rh_last_error();
    for (const char* piece : {"railhead-rail", "needs", "free"}) {
      EXPECT_NE(std::string(rh_last_error()).find(piece), std::string::npos) << rh_last_error();
    }
    EXPECT_EQ(group, nullptr);
    both.arrive_and_wait();
    good_round(Group(session, next, small_config(2, rank)).get());
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, Creation, testing::Values(1U, 2U),
                         [](const auto& i) { return std::to_string(i.param); });

}  // namespace
}  // namespace railhead::test
