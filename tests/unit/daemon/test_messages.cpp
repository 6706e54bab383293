#include <gtest/gtest.h>

#include <cstring>

#include "daemon/group/messages.hpp"

namespace railhead::daemon {
namespace {

template <class M>
M back(M body) {
  GroupMessage message{GroupKey{4, 2}, std::move(body)};
  const auto decoded = decode(encode(message));
  EXPECT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->group, message.group);
  return std::get<M>(decoded->body);
}

mesh::HostId host(std::uint8_t n) {
  mesh::HostId id;
  id.bytes.fill(n);
  return id;
}

TEST(Messages, Join) {
  JoinMessage join{3, {}, "tcp://10.1.2.3:4", {}, 5};
  join.secret.fill(9);
  join.params.ranks = 7;
  join.params.experts = 3;
  join.params.abort_on_refusal = true;
  join.params.expert_rank = {2, 0, 1};
  const auto got = back(join);
  EXPECT_EQ(got.rank, 3U);
  EXPECT_EQ(got.secret, join.secret);
  EXPECT_EQ(got.endpoint, join.endpoint);
  EXPECT_EQ(got.params, join.params);
}

TEST(Messages, MapWithItsDaemons) {
  const auto got = back(MapMessage{77, {{host(1), "a"}, {host(2), "b"}}, {0, 1, 1, 0}, 3});
  EXPECT_EQ(got.epoch, 77U);
  ASSERT_EQ(got.daemons.size(), 2U);
  EXPECT_EQ(got.daemons[1].host, host(2));
  EXPECT_EQ(got.daemons[1].endpoint, "b");
  EXPECT_EQ(got.domain_of_rank, (std::vector<std::uint16_t>{0, 1, 1, 0}));
}

TEST(Messages, AMapThatNamesADomainWithoutADaemonIsRefused) {
  EXPECT_FALSE(decode(encode({GroupKey{}, MapMessage{1, {{host(1), "a"}}, {0, 1}}})));
}

TEST(Messages, Wire) {
  WireMessage wire;
  wire.offer.fabric_address = std::string("\0\1tcp", 5);
  wire.offer.token.fill(5);
  wire.offer.credits = {11, 12};
  wire.offer.rings.push_back({1, 1000, 2, 3, 4, {5, 6}});
  const auto got = back(wire);
  EXPECT_EQ(got.offer.fabric_address, wire.offer.fabric_address);
  EXPECT_EQ(got.offer.token, wire.offer.token);
  EXPECT_EQ(got.offer.credits.key, 11U);
  ASSERT_EQ(got.offer.rings.size(), 1U);
  EXPECT_EQ(got.offer.rings[0].rank, 1000);
  EXPECT_EQ(got.offer.rings[0].slots.base, 6U);
}

TEST(Messages, TheEndOfAGroup) {
  const auto frozen = back(FrozenMessage{{Code::rank_lost, "rank 3 lost"}, 3, 41});
  EXPECT_EQ(frozen.reason.code(), Code::rank_lost);
  EXPECT_EQ(frozen.reason.message(), "rank 3 lost");
  EXPECT_EQ(frozen.completed, 41U);
  const auto left = back(LeftMessage{2, 9, "closed"});
  EXPECT_EQ(left.completed, 9U);
  EXPECT_EQ(left.reason, "closed");
  const auto quiesced = back(QuiescedMessage{{{7, 1ULL << 40}}});
  ASSERT_EQ(quiesced.posted.size(), 1U);
  EXPECT_EQ(quiesced.posted[0].second, 1ULL << 40);
}

TEST(Messages, TheShortOnes) {
  const auto withdraw = back(WithdrawMessage{4, {Code::peer_lost, "no path"}});
  EXPECT_EQ(withdraw.rank, 4U);
  EXPECT_EQ(withdraw.reason.code(), Code::peer_lost);
  EXPECT_EQ(withdraw.reason.message(), "no path");
  EXPECT_EQ(back(RefusedMessage{{Code::mismatch, "hidden"}}).reason.code(), Code::mismatch);
  EXPECT_EQ(back(MissingMessage{{1, 5}}).ranks, (std::vector<std::uint32_t>{1, 5}));
  EXPECT_EQ(back(AttachingMessage{{3}}).ranks, (std::vector<std::uint32_t>{3}));
  back(WiredMessage{});
  back(CommitMessage{});
}

TEST(Messages, TheLargestMapFits) {
  MapMessage map{1, {}, std::vector<std::uint16_t>(ipc::kMaxRanks)};
  for (std::uint16_t d = 0; d < 1000; ++d) map.daemons.push_back({host(1), "tcp://10.100.100.100:54321"});
  EXPECT_EQ(back(map).domain_of_rank.size(), ipc::kMaxRanks);
}

// A list of empty elements: its length costs no bytes.
TEST(Messages, AListOfNothingIsNotBlownUp) {
  auto bytes = encode({GroupKey{}, MissingMessage{{1, 2, 3, 4}}});
  std::size_t found = 0;
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    // A list pointer (low bits 01) to 4 elements of 4 bytes (size code 4).
    if ((word & 3) != 1 || (word >> 32) != ((4ULL << 3) | 4)) continue;
    word = (word & 0xffffffffU) | ((0x1fffffffULL << 3) << 32);  // 2^29 - 1 elements of nothing
    std::memcpy(bytes.data() + at, &word, 8);
    ++found;
  }
  ASSERT_EQ(found, 1U);
  EXPECT_FALSE(decode(bytes));
}

TEST(Messages, CutOrEmptyBytesAreAnError) {
  const auto good = encode({GroupKey{}, LeftMessage{2, 9, "closed"}});
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(decode(std::span(good.data(), n))) << n;
}

}  // namespace
}  // namespace railhead::daemon
