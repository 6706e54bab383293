// What users of such libraries report most often, values and ends: precision, NaN and padding, weights, overflow, a
// rank that makes fewer calls, a write that fails.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>

#include "tests/support/case_runner.hpp"

namespace railhead::test {
namespace {

using reference::Layout;
using reference::NumberType;

// B12: rank 2 makes three calls, the others four: all who wait learn who is missing and at which operation.
TEST(Reports, OneRankMakesFewerCalls) {
  for (const std::uint32_t hosts : {1U, 2U}) {
    Cluster cluster({.hosts = hosts});
    const auto other = static_cast<std::uint16_t>(hosts - 1);
    const CaseSpec spec = spec_of({0, other, other}, {2, 2, 2});
    std::promise<void> failed[2];
    cluster.run(spec.host_of_rank, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      rh_group_config config = group_config(spec, rank, {});
      config.op_timeout_ms = rank == 2 ? 60'000 : 2'500;
      const Group group(session, id, config);
      const std::int64_t ids[4] = {0, 1, 2, 3};
      const std::uint16_t x[2 * 16] = {};
      rh_dispatch_args args{};
      args.x = x;
      args.type = RH_BF16;
      args.tokens = 2;
      args.ids = ids;
      for (int call = 0; call < 3; ++call) group.dispatch(args);
      if (rank == 2) {
        for (auto& each : failed) each.get_future().wait();
        return;
      }
      try {
        if (rank == 0) {
          group.dispatch(args);
        } else {
          rh_dispatch_result result{};
          auto [event, handle] = group.dispatch_async(args, result);
          while (!event.wait_for(std::chrono::milliseconds(20))) continue;
        }
        ADD_FAILURE() << "rank " << rank << " completed an operation that rank 2 never called";
      } catch (const Error& e) {
        EXPECT_EQ(e.status(), RH_TIMEOUT) << e.what();
        for (const char* piece :
             {"group ", "dispatch op 4", "rank 2", "phase headers", "got 2 of 3", "op_timeout_ms"}) {
          EXPECT_NE(std::string(e.what()).find(piece), std::string::npos) << piece << ": " << e.what();
        }
      }
      failed[rank].set_value();
    });
  }
}

// B18: 256 and seven times 1 sum to 263, which bf16 rounds to 264; a sum in bf16 would stay at 256.
TEST(Reports, SumsAreKeptInFp32) {
  for (const std::uint32_t hosts : {1U, 2U}) {
    Cluster cluster({.hosts = hosts});
    CaseSpec spec = spec_of({}, std::vector<std::uint32_t>(8, 0));
    // With two hosts, partial sums cross the wire in fp32.
    for (std::uint32_t r = 0; r < 8; ++r) spec.host_of_rank.push_back(static_cast<std::uint16_t>(r % hosts));
    spec.topk = 8;
    cluster.run(spec.host_of_rank, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, group_config(spec, rank, {}));
      const std::int64_t ids[8] = {0, 1, 2, 3, 4, 5, 6, 7};
      const std::uint16_t x[16] = {};
      rh_dispatch_args args{};
      args.x = x;
      args.type = RH_BF16;
      args.tokens = rank == 0 ? 1 : 0;
      args.ids = ids;
      const auto [result, handle] = group.dispatch(args);
      ASSERT_EQ(result.row_count, 1U);
      const std::vector<std::uint16_t> rows(16, reference::float_to_bf16(rank == 0 ? 256.0F : 1.0F));
      std::vector<std::uint16_t> y(16);
      rh_combine_args combine{};
      combine.handle = handle.get();
      combine.rows = rows.data();
      combine.row_count = 1;
      combine.type = RH_BF16;
      combine.wire_type = RH_FP32;
      combine.y = y.data();
      group.combine(combine);
      if (rank == 0) {
        EXPECT_EQ(y, std::vector<std::uint16_t>(16, reference::float_to_bf16(264.0F)));
      }
    });
  }
}

// B20: NaN patterns, infinities, -0 and subnormals arrive as they were; padding is zero though the place was poisoned.
TEST(Reports, NaNsStayInTheirTokenAndPaddingIsZero) {
  Cluster cluster({.hosts = 2});
  CaseSpec spec = spec_of({0, 1}, {5, 7});
  spec.layout = Layout::expert;
  spec.align = 16;
  spec.odd.special_values = 300;
  for (const NumberType type : {NumberType::bf16, NumberType::fp16, NumberType::fp32}) {
    spec.type = spec.combine = type;
    const Expectation expected = expect(spec, 0);
    cluster.run(spec.host_of_rank, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, group_config(spec, rank, {}));
      {
        const Memory poison = group.alloc(RH_ARENA_RECEIVE, 1 << 20);
        std::memset(poison.data(), 0xff, poison.bytes());
      }
      for (const CallStyle style : {CallStyle::blocking, CallStyle::out_in_arena, CallStyle::planned}) {
        run_round(group, rank, spec, expected, style);
      }
    });
  }
}

// B21: fp32 weights reach the experts bit for bit, next to the right id.
TEST(Reports, WeightsKeepTheirBits) {
  Cluster cluster({.hosts = 2});
  for (const Layout layout : {Layout::rank, Layout::expert}) {
    CaseSpec spec = spec_of({0, 1, 0}, {33, 20, 41});
    spec.topk = 4;
    spec.layout = layout;
    Expectation expected = expect(spec, 0);
    for (auto& input : expected.test.inputs) {
      for (std::size_t i = 0; i < input.weights.size(); ++i) input.weights[i] = 1.0F / static_cast<float>(i + 1);
    }
    expected.received = reference::dispatch(expected.test);
    spec.weighted = false;
    reference::CombineOptions options;
    options.hidden = spec.hidden;
    expected.y = reference::combine(expected.test, expected.received, expected.rows, options);
    cluster.run(spec.host_of_rank, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, group_config(spec, rank, {}));
      run_round(group, rank, spec, expected, CallStyle::blocking);
    });
  }
}

// B30: a write fails: every rank gets an error, and none a result.
TEST(Reports, AFailedWriteIsAnErrorOnAllRanks) {
  ClusterOptions options;
  options.hosts = 2;
  options.fault = "fail_nth=40";
  Cluster cluster(options);
  const CaseSpec spec = spec_of({0, 1, 0, 1}, {200, 200, 200, 200});
  const Expectation expected = expect(spec, 0);
  cluster.run(spec.host_of_rank, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, group_config(spec, rank, {}));
    bool failed = false;
    for (int round = 0; round < 200 && !failed; ++round) {
      try {
        run_round(group, rank, spec, expected, CallStyle::blocking);
      } catch (const Error& e) {
        failed = true;
        EXPECT_TRUE(e.status() == RH_PEER_LOST || e.status() == RH_RANK_LOST) << e.what();
      }
    }
    EXPECT_TRUE(failed);
    EXPECT_NE(group.status(), RH_OK);
  });
}

}  // namespace
}  // namespace railhead::test
