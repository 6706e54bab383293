// A combine with bad arguments or a wrong handle is refused by name and never a wrong sum; the corrected call works.
#include <gtest/gtest.h>

#include <future>

#include "tests/conformance/refusals.hpp"

namespace railhead::test {
namespace {

const std::vector<Spoiled<rh_combine_args>>& spoiled() {
  static const std::vector<Spoiled<rh_combine_args>> list = {
      {"a row missing", [](auto& a) { a.row_count -= 1; }, {"row_count is 5", "has 6 rows"}},
      {"a row too many", [](auto& a) { a.row_count += 1; }, {"row_count is 7", "has 6 rows"}},
      {"no rows", [](auto& a) { a.rows = nullptr; }, {"rows is NULL", "6"}},
      {"no y", [](auto& a) { a.y = nullptr; }, {"y is NULL", "3"}},
      {"raw bytes", [](auto& a) { a.type = RH_U8; }, {"type", "raw"}},
      {"unknown type", [](auto& a) { put(a.type, 9); }, {"type", "9"}},
      {"fp16 on the wire", [](auto& a) { a.wire_type = RH_FP16; }, {"wire_type", "fp16"}},
      {"unknown wire type", [](auto& a) { put(a.wire_type, 9); }, {"wire_type", "9"}},
      {"y pitch below a row", [](auto& a) { a.y_pitch = 63; }, {"y_pitch", "63", "64"}},
      {"no handle", [](auto& a) { a.handle = nullptr; }, {"handle"}, RH_INVALID_USAGE},
      {"size not set", [](auto& a) { a.size = 0; }, {"rh_combine_args.size is 0"}},
  };
  return list;
}

class RefusedCombine : public Refused {
 protected:
  std::vector<std::uint16_t> hosts() const { return {0, last_host()}; }
};

void combine_well(const Group& group, SmallCall& call, const rh_combine_args& args) {
  std::fill(call.y.begin(), call.y.end(), -1.0F);
  group.combine(args);
  for (std::size_t i = 0; i < call.y.size(); ++i) ASSERT_EQ(call.y[i], 2 * call.x[i]) << i;
}

TEST_P(RefusedCombine, BadArgumentsAreNamedAndTheCorrectedCallWorks) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    for (const auto& bad : spoiled()) {
      SmallCall call;
      call.ids = {0, 2, 0, 2, 0, 2};
      const auto [result, handle] = group.dispatch(call.args);
      const rh_combine_args good = call.combine_args(result, handle.get());
      const std::uint64_t done = completed(group.get());
      if (rank == 0) {
        rh_combine_args args = good;
        bad.spoil(args);
        expect_refused(group.get(), bad.what, rh_combine(group.get(), &args, nullptr), bad.status, bad.says, done);
        rh_event* event = nullptr;
        expect_refused(group.get(), bad.what, rh_combine(group.get(), &args, &event), bad.status, bad.says, done);
        EXPECT_EQ(event, nullptr);
      }
      combine_well(group, call, good);
    }
  });
}

TEST_P(RefusedCombine, WeightsWithLayoutRank) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    call.args.layout = RH_LAYOUT_RANK;
    const auto [result, handle] = group.dispatch(call.args);
    rh_combine_args args = call.combine_args(result, handle.get());
    args.weighted = 1;
    expect_refused(group.get(), "weighted", rh_combine(group.get(), &args, nullptr), RH_INVALID_ARGUMENT,
                   {"weighted", "rank"}, 1);
    args.weighted = 0;
    combine_well(group, call, args);
  });
}

// Another group's handle, one of an earlier round after its release here or elsewhere, one whose dispatch is not run.
TEST_P(RefusedCombine, HandlesThatDoNotFit) {
  std::promise<UniqueId> made;
  const std::shared_future<UniqueId> other_id = made.get_future().share();
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    if (rank == 0) made.set_value(session.unique_id());
    const Group group(session, id, small_config(2, rank));
    const Group other(session, other_id.get(), small_config(2, rank));
    rh_group* const g = group.get();
    SmallCall call;
    const auto [foreign_result, foreign] = other.dispatch(call.args);
    auto [result, handle] = group.dispatch(call.args);
    rh_combine_args args = call.combine_args(result, foreign.get());
    expect_refused(g, "of another group", rh_combine(g, &args, nullptr), RH_INVALID_USAGE, {"another group"}, 1);

    args.handle = handle.get();
    if (rank == 1) {
      handle.release();
      expect_refused(g, "released here", rh_combine(g, &args, nullptr), RH_INVALID_USAGE, {"released"}, 1);
      EXPECT_EQ(rh_handle_release(args.handle), RH_INVALID_USAGE);
    }
    good_round(g);
    if (rank == 0) {
      expect_refused(g, "released by rank 1", rh_combine(g, &args, nullptr), RH_INVALID_USAGE, {"rank 1", "op 1"}, 3);
    }
    auto [rows, planned] = group.plan(call.args);
    args.handle = planned.get();
    rh_event* event = nullptr;
    expect_refused(g, "not run", rh_combine(g, &args, &event), RH_INVALID_USAGE, {"op 4", "not complete"}, 3);
    expect_refused(g, "blocking behind a plan", rh_combine(g, &args, nullptr), RH_INVALID_USAGE,
                   {"op 4", "rh_dispatch_run"}, 3);
    group.run(planned, nullptr, 0);
    good_round(g);
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, RefusedCombine, refusal_hosts(), refusal_name);

}  // namespace
}  // namespace railhead::test
