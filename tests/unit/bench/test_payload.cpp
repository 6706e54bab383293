#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tools/ep-bench/rank/payload.hpp"

namespace railhead::bench {
namespace {

Workload small_work() {
  Workload work;
  work.hidden = 40;
  return work;
}

std::string text_of(std::span<const std::byte> row) {
  return {reinterpret_cast<const char*>(row.data()), row.size()};
}

TEST(Payload, EveryProcessHasTheSameRows) {
  const Payload a(small_work()), b(small_work());
  EXPECT_EQ(text_of(a.row(1, 2, 3)), text_of(b.row(1, 2, 3)));
}

TEST(Payload, RanksBatchesTokensAndSeedsDiffer) {
  Workload other = small_work();
  other.seed = 2;
  const Payload payload(small_work()), reseeded(other);
  const std::set<std::string> rows = {text_of(payload.row(0, 0, 0)), text_of(payload.row(1, 0, 0)),
                                      text_of(payload.row(0, 1, 0)), text_of(payload.row(0, 0, 1)),
                                      text_of(reseeded.row(0, 0, 0))};
  EXPECT_EQ(rows.size(), 5);
}

TEST(Payload, FillsDenseRows) {
  const Payload payload(small_work());
  std::vector<std::byte> x(3 * small_work().row_bytes());
  payload.fill(2, 5, x);
  EXPECT_EQ(text_of(std::span(x).subspan(2 * 80, 80)), text_of(payload.row(2, 5, 2)));
}

}  // namespace
}  // namespace railhead::bench
