#include "tests/unit/proxy/fabric_cases.hpp"

namespace railhead::daemon {
namespace {

using ipc::RailRequest;
using ipc::RailVerb;

struct Hostile {
  std::string name;
  std::vector<RailRequest> requests;  // the last one is the bad one
  std::string says;
};

// Ring shapes: rank 0 of domain 0 has 4 tx and 4 rx rings of 4 slots, one other domain.
const Hostile kHostile[] = {
    {"unknown_kind", {{static_cast<RailVerb>(9), 0, 0, 0}}, "a request of kind 9, 1 to 3 are known"},
    {"tx_ring", {{RailVerb::chunk, 4, 0, 64}}, "a chunk for tx ring 4, it has 4"},
    {"sequence_ahead",
     {{RailVerb::chunk, 1, 1, 64}},
     "slot 1 of tx ring 1 (dispatch, home 0, channel 1), slot 0 is next"},
    {"sequence_again",
     {{RailVerb::chunk, 2, 0, 64}, {RailVerb::chunk, 2, 0, 64}},
     "slot 0 of tx ring 2 (combine, home 2, channel 0), slot 1 is next"},
    {"no_bytes", {{RailVerb::chunk, 0, 0, 0}}, "a chunk of 0 bytes"},
    {"too_many_bytes", {{RailVerb::chunk, 0, 0, (1ULL << 48) - 1}}, "a chunk of 281474976710655 bytes"},
    {"without_credit",
     {{RailVerb::chunk, 0, 0, 64},
      {RailVerb::chunk, 0, 1, 64},
      {RailVerb::chunk, 0, 2, 64},
      {RailVerb::chunk, 0, 3, 64},
      {RailVerb::chunk, 0, 4, 64}},
     "slot 4 of tx ring 0 (dispatch, home 0, channel 0) without a credit: 0 were granted, the ring has 4 slots"},
    {"rx_ring", {{RailVerb::credit, 4, 0, 1}}, "a credit for rx ring 4, it has 4"},
    {"credit_beyond_arrived",
     {{RailVerb::credit, 0, 0, 1}},
     "a credit of 1 slots of rx ring 0 (dispatch, home 2, channel 0): 0 were credited before, 0 have arrived"},
    {"credit_zero", {{RailVerb::credit, 3, 0, 0}}, "a credit of 0 slots of rx ring 3 (combine, home 0, channel 1)"},
    {"header_domain", {{RailVerb::header, 1, 1, 8}}, "a header for other domain 1, there are 1"},
    {"header_out_of_turn",
     {{RailVerb::header, 0, 2, 8}},
     "the header of operation 2 for domain 1, operation 1 is next"},
    {"slice_words", {{RailVerb::header, 0, 1, 9}}, "a header with a slice of 9 words for domain 1, 8 are due"},
};

void PrintTo(const Hostile& hostile, std::ostream* out) {
  *out << hostile.name;
}

class ProxyHostile : public testing::TestWithParam<Hostile> {};

TEST_P(ProxyHostile, CutsTheGroupOffByNameAndServesTheOthers) {
  Daemons daemons(2);
  TestGroup bad(1, {&daemons[0], &daemons[1]});
  TestGroup good(2, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(bad.establish());
  ASSERT_TRUE(good.establish());
  for (const RailRequest& request : GetParam().requests) ASSERT_TRUE(bad.rank(0).client.submit(request));
  daemons[0].ring_if_needed();
  ASSERT_TRUE(bad.wait_failed(0));
  const auto failure = bad.log(0).failures.at(0);
  EXPECT_EQ(failure.rank, 0);
  EXPECT_EQ(failure.domain, 0);
  EXPECT_EQ(failure.status.code(), Code::protocol);
  EXPECT_NE(failure.status.message().find("rank 0 was cut off: it submitted " + GetParam().says), std::string::npos)
      << failure.status.message();

  // Whatever it submits from now on is not even looked at.
  for (int i = 0; i < 8; ++i) bad.rank(0).client.submit({static_cast<RailVerb>(77), 1, 2, 3});
  daemons[0].ring_if_needed();
  EXPECT_TRUE(good.exchange(10, 256));
  EXPECT_EQ(bad.log(0).failures.size(), 1U);
  EXPECT_TRUE(good.log(0).failures.empty());
  EXPECT_TRUE(bad.close());
  EXPECT_TRUE(good.close());
}

INSTANTIATE_TEST_SUITE_P(Kinds, ProxyHostile, testing::ValuesIn(kHostile),
                         [](const auto& test) { return test.param.name; });

TEST(ProxyHostileRank, SubmittingBeforeThePathIsUp) {
  Daemons daemons(2);
  TestGroup group(1, {&daemons[0], &daemons[1]});
  group.open(0);
  ASSERT_TRUE(group.offers(0));
  ASSERT_TRUE(group.rank(0).try_send(0, 64));
  daemons[0].ring_if_needed();
  ASSERT_TRUE(group.wait_failed(0));
  EXPECT_NE(group.log(0).failures[0].status.message().find("before the path to it was up"), std::string::npos);
}

TEST(ProxyHostileRank, GarbageInTheSubmissionRingDoesNoHarm) {
  Daemons daemons(2);
  TestGroup bad(1, {&daemons[0], &daemons[1]});
  TestGroup good(2, {&daemons[0], &daemons[1]});
  ASSERT_TRUE(bad.establish());
  ASSERT_TRUE(good.establish());
  for (const auto& rank : bad.ranks) {
    auto* const words = reinterpret_cast<std::uint64_t*>(rank->words.data());
    for (std::uint64_t i = 0; i < rank->words.bytes() / 8; ++i) {
      ipc::store_relaxed(words[i], i * std::uint64_t{0x9e3779b97f4a7c15});
    }
  }
  daemons[0].ring_if_needed();
  daemons[1].ring_if_needed();
  EXPECT_TRUE(good.exchange(50, 256));
  EXPECT_TRUE(good.log(0).failures.empty());
}

}  // namespace
}  // namespace railhead::daemon
