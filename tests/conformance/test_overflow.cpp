// Sizes beyond 32 bits. Needs 5 GB of memory.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/case_runner.hpp"

namespace railhead::test {
namespace {

// B14: more than 2^31 elements and bytes received by one rank; first, middle and last rows.
TEST(Overflow, MoreThanTwoToThe31Elements) {
  constexpr std::uint32_t kRows = 524'289;
  constexpr std::uint32_t kHidden = 4096;
  Cluster cluster({.hosts = 1});
  CaseSpec spec;
  spec.host_of_rank = {0};
  spec.tokens = {kRows};
  spec.hidden = kHidden;
  spec.topk = 1;
  spec.experts = 1;
  cluster.run({0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, group_config(spec, rank, {}));
    std::vector<std::uint8_t> x(std::size_t{kRows} * kHidden);
    for (std::size_t row = 0; row < kRows; ++row) std::memcpy(x.data() + row * kHidden, &row, sizeof(row));
    const std::vector<std::int64_t> ids(kRows, 0);
    rh_dispatch_args args{};
    args.x = x.data();
    args.tokens = kRows;
    args.ids = ids.data();
    args.layout = RH_LAYOUT_EXPERT;
    const auto [result, handle] = group.dispatch(args);
    ASSERT_EQ(result.row_count, kRows);
    for (std::size_t row = 0; row < kRows; ++row) {
      ASSERT_EQ(std::memcmp(static_cast<std::uint8_t*>(result.rows) + row * kHidden, &row, sizeof(row)), 0) << row;
    }
  });
}

}  // namespace
}  // namespace railhead::test
