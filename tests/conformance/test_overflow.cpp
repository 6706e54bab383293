// Sizes beyond 32 bits. Needs 11 GB of memory.
#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "ipc/memory_headroom.hpp"
#include "tests/support/case_runner.hpp"

namespace railhead::test {
namespace {

constexpr std::uint32_t kHidden = 4096;
// The rows of rank 0 alone are more than 2^31 elements and 2^32 bytes; those of rank 1 begin beyond.
constexpr std::array<std::uint32_t, 2> kTokens = {524'289, 3};
constexpr std::size_t kAllRows = kTokens[0] + kTokens[1];
constexpr std::uint64_t kNeeded = 11ULL << 30;

// Small integers are exact in bf16.
std::uint16_t bf16(std::size_t value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value % 128)) >> 16);
}

// Rows that say which one of all they are, at both ends.
class NumberedRow {
 public:
  explicit NumberedRow(std::size_t number) : digits_{bf16(number), bf16(number / 128), bf16(number / 16'384)} {}
  void write(std::uint16_t* row) const {
    for (std::size_t i = 0; i < digits_.size(); ++i) row[i] = row[kHidden - 1 - i] = digits_[i];
  }
  [[nodiscard]] bool is(const std::uint16_t* row) const {
    for (std::size_t i = 0; i < digits_.size(); ++i) {
      if (row[i] != digits_[i] || row[kHidden - 1 - i] != digits_[i]) return false;
    }
    return row[kHidden / 2] == 0;
  }

 private:
  std::array<std::uint16_t, 3> digits_;
};

void expect_rows(const char* what, const std::uint16_t* rows, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(NumberedRow(first + i).is(rows + i * kHidden)) << what << " " << i;
  }
}

class Overflow : public testing::TestWithParam<std::uint32_t> {};

// B14: every row goes to the one expert of rank 1 and comes back.
TEST_P(Overflow, MoreThanTwoToThe32BytesThereAndBack) {
  const auto headroom = ipc::memory_headroom();
  ASSERT_TRUE(headroom) << headroom.error().to_string();
  if (headroom->free_bytes < kNeeded) {
    GTEST_SKIP() << "needs " << kNeeded << " bytes of memory, free are " << headroom->free_bytes;
  }
  Cluster cluster({.hosts = GetParam()});
  CaseSpec spec;
  spec.host_of_rank = {0, static_cast<std::uint16_t>(GetParam() - 1)};
  spec.hidden = kHidden;
  spec.topk = 1;
  spec.experts = 2;
  cluster.run(spec.host_of_rank, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, group_config(spec, rank, {}));
    const std::size_t first = rank == 0 ? 0 : kTokens[0];
    const std::size_t tokens = kTokens[rank];
    std::vector<std::uint16_t> x(tokens * kHidden);
    for (std::size_t i = 0; i < tokens; ++i) NumberedRow(first + i).write(x.data() + i * kHidden);
    const std::vector<std::int64_t> ids(tokens, 1);
    rh_dispatch_args args{};
    args.x = x.data();
    args.type = RH_BF16;
    args.tokens = kTokens[rank];
    args.ids = ids.data();
    args.layout = RH_LAYOUT_EXPERT;
    const auto [got, handle] = group.dispatch(args);
    ASSERT_EQ(got.row_count, rank == 0 ? 0 : kAllRows);
    expect_rows("received row", static_cast<const std::uint16_t*>(got.rows), 0, got.row_count);

    // In the place of x: three such matrices at once would be too much for a small machine.
    std::fill(x.begin(), x.end(), std::uint16_t{0xffff});
    rh_combine_args back{};
    back.handle = handle.get();
    back.rows = got.rows;
    back.row_count = got.row_count;
    back.type = RH_BF16;
    back.y = x.data();
    group.combine(back);
    expect_rows("combined row", x.data(), first, tokens);
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, Overflow, testing::Values(1U, 2U),
                         [](const auto& i) { return std::to_string(i.param); });

}  // namespace
}  // namespace railhead::test
