#include "tests/unit/proxy/fabric_cases.hpp"

namespace railhead::daemon {
namespace {

class ProxyHeaders : public testing::TestWithParam<FabricCase> {
 protected:
  // Until the header of `op` of a remote rank stands on the board of `domain`.
  static bool wait_on_board(TestGroup& group, std::uint16_t domain, std::uint16_t rank, std::uint64_t op) {
    const auto deadline = soon();
    while (group.segment(domain).header(rank, op).header == nullptr) {
      if (deadline.expired()) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

TEST_P(ProxyHeaders, ReachTheBoardWithTheirSlicesInOrder) {
  Daemons daemons(2, GetParam());
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(group.establish());
  for (std::uint64_t op = 1; op <= 60; ++op) {
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      group.rank(rank).send_header(0, 1, op);
      daemons[0].ring_if_needed();
    }
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(wait_on_board(group, 1, rank, op)) << "op " << op;
      const auto row = group.segment(1).header(rank, op);
      EXPECT_EQ(row.header->epoch, group.shape->epoch());
      for (std::uint32_t i = 0; i < group.shape->slice_words(1); ++i) EXPECT_EQ(row.slice[i], op * 1000 + rank);
    }
    EXPECT_TRUE(group.segment(1).complete(0, op));
    EXPECT_TRUE(group.segment(1).complete(1, op));
  }
}

TEST_P(ProxyHeaders, WaitForTheWindowOfTheReceivingDomain) {
  Daemons daemons(2, GetParam());
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(group.establish());
  // Depth 2: operations 1 and 2 have their window, 3 and 4 must wait although they arrived.
  for (std::uint64_t op = 1; op <= 4; ++op) group.rank(0).send_header(0, 1, op);
  daemons[0].ring_if_needed();
  ASSERT_TRUE(wait_on_board(group, 1, 0, 2));
  const auto deadline = soon();
  while (daemons[1].report().peers[0].rx_immediates < 4 && !deadline.expired()) std::this_thread::yield();
  EXPECT_EQ(group.segment(1).header(0, 3).header, nullptr);
  EXPECT_TRUE(group.segment(1).complete(0, 1));
  static_cast<void>(daemons[1].report());
  EXPECT_EQ(group.segment(1).header(0, 3).header, nullptr) << "one rank of two has not completed operation 1";
  EXPECT_TRUE(group.segment(1).complete(1, 1));
  EXPECT_TRUE(wait_on_board(group, 1, 0, 3));
  EXPECT_EQ(group.segment(1).header(0, 4).header, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ProxyHeaders, testing::Values(kLoopback, kShuffled, kTcp, kTcpShuffled),
                         [](const auto& test) { return test.param.name; });

struct Spoilt {
  std::string name;
  std::function<void(ipc::OpHeader&)> spoil;
  std::string says;
  bool reseal;
};

void PrintTo(const Spoilt& spoilt, std::ostream* out) {
  *out << spoilt.name;
}

class ProxySpoiltHeader : public testing::TestWithParam<Spoilt> {};

TEST_P(ProxySpoiltHeader, FailsTheGroupOfTheReceiverByName) {
  Daemons daemons(2);
  TestGroup group(1, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(group.establish());
  group.rank(1).send_header(0, 1, 1, [&](ipc::OpHeader& header) {
    GetParam().spoil(header);
    const std::vector<std::uint32_t> slice(group.shape->slice_words(1), 1001);
    if (GetParam().reseal) header.checksum = ipc::header_checksum(header, slice.data(), slice.size());
  });
  daemons[0].ring_if_needed();
  ASSERT_TRUE(group.wait_failed(1));
  const auto failure = group.log(1).failures.at(0);
  EXPECT_EQ(failure.domain, 0);
  EXPECT_EQ(failure.status.code(), Code::protocol);
  EXPECT_NE(failure.status.message().find(GetParam().says), std::string::npos) << failure.status.message();
  EXPECT_EQ(group.segment(1).header(1, 1).header, nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ProxySpoiltHeader,
    testing::Values(Spoilt{"checksum", [](ipc::OpHeader& h) { h.tokens += 1; },
                           "rank 1 for operation 1 with a wrong checksum", false},
                    Spoilt{"epoch", [](ipc::OpHeader& h) { h.epoch += 1; }, "but it says operation 1 of epoch", true},
                    Spoilt{"operation", [](ipc::OpHeader& h) { h.op = 2; }, "but it says operation 2", true}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace railhead::daemon
