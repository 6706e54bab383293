// A handle that is released while its dispatch flies has ended on every rank with that rank's next operation.
#include <gtest/gtest.h>

#include <string>

#include "tests/conformance/refusals.hpp"

namespace railhead::test {
namespace {

TEST(EarlyRelease, ReachesTheOthersWithTheNextOperation) {
  Cluster cluster{{.hosts = 1}};
  cluster.run({0, 0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    SmallCall more;
    const auto [result, first] = group.dispatch(call.args);
    int missed = 0;
    for (int round = 0; round < 20000; ++round) {
      Event one = group.combine_async(call.combine_args(result, first.get()));
      auto other = make<rh_dispatch_result>();
      auto [two, handle] = group.dispatch_async(more.args, other);
      if (rank == 1) handle.release();
      one.wait();
      two.wait();
      group.combine(call.combine_args(result, first.get()));
      if (rank == 1) continue;
      rh_combine_args again = more.combine_args(other, handle.get());
      again.row_count = 999;  // refused for this when the release did not come
      ASSERT_NE(rh_combine(group.get(), &again, nullptr), RH_OK);
      if (std::string(rh_last_error()).find("rank 1 released the handle") == std::string::npos) ++missed;
    }
    EXPECT_EQ(missed, 0) << "of 20000 releases";
  });
}

}  // namespace
}  // namespace railhead::test
