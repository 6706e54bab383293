#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/group/coordinator.hpp"

namespace railhead::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

mesh::HostId host(std::uint8_t n) {
  mesh::HostId id;
  id.bytes[0] = n;
  return id;
}

ipc::GroupParams params(std::uint32_t ranks) {
  ipc::GroupParams p;
  p.ranks = ranks;
  p.experts = 8;
  p.hidden = 16;
  p.topk = 2;
  return p;
}

class CoordinatorTest : public testing::Test {
 protected:
  struct Sent {
    mesh::HostId to;
    GroupMessage message;
  };
  void join(std::uint8_t from, std::uint32_t rank, const ipc::GroupParams& p, std::uint32_t proxies = 1) {
    coordinator_.on_join(host(from), {rank, secret_, "tcp://h" + std::to_string(from), p, proxies});
  }
  template <class M>
  std::vector<std::pair<std::uint8_t, M>> sent() const {
    std::vector<std::pair<std::uint8_t, M>> out;
    for (const Sent& s : sent_) {
      if (const auto* m = std::get_if<M>(&s.message.body)) out.emplace_back(s.to.bytes[0], *m);
    }
    return out;
  }

  std::array<std::uint8_t, 16> secret_{7};
  std::vector<Sent> sent_;
  Coordinator coordinator_{GroupKey{1}, secret_, [this](const DaemonEntry& to, GroupMessage m) {
                             sent_.push_back({to.host, std::move(m)});
                           }};
};

TEST_F(CoordinatorTest, MapNumbersDomainsByTheirLowestRankAndCommitsWhenAllAreWired) {
  join(9, 0, params(4));
  join(3, 1, params(4));
  join(3, 3, params(4));
  EXPECT_THAT(coordinator_.missing(), ElementsAre(2));
  EXPECT_TRUE(sent<MapMessage>().empty());
  join(9, 2, params(4));
  const auto maps = sent<MapMessage>();
  ASSERT_EQ(maps.size(), 2U);
  EXPECT_THAT(maps[0].second.domain_of_rank, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(maps[0].second.daemons[0].host, host(9));
  EXPECT_EQ(maps[0].second.epoch, maps[1].second.epoch);
  EXPECT_NE(maps[0].second.epoch, 0U);
  coordinator_.on_wired(host(9));
  coordinator_.on_wired(host(9));   // once more does not count twice
  coordinator_.on_wired(host(77));  // a stranger does not count
  EXPECT_TRUE(sent<CommitMessage>().empty());
  coordinator_.on_wired(host(3));
  EXPECT_EQ(sent<CommitMessage>().size(), 2U);
  EXPECT_TRUE(coordinator_.finished());
}

TEST_F(CoordinatorTest, DifferencesNameFieldRanksAndValuesAtOnce) {
  join(1, 0, params(8));
  join(1, 1, params(8));
  auto other = params(8);
  other.hidden = 32;
  join(2, 5, other);
  const auto refused = sent<RefusedMessage>();
  ASSERT_EQ(refused.size(), 2U);
  EXPECT_EQ(refused[0].second.reason.code(), Code::mismatch);
  EXPECT_THAT(refused[0].second.reason.message(), HasSubstr("hidden differs"));
  EXPECT_THAT(refused[0].second.reason.message(), HasSubstr("16 on ranks 0 and 1"));
  EXPECT_THAT(refused[0].second.reason.message(), HasSubstr("32 on rank 5"));
}

TEST_F(CoordinatorTest, EveryParameterIsCompared) {
  const auto set = [](auto member) { return [member](ipc::GroupParams& p) { p.*member += 1; }; };
  const std::vector<std::pair<std::string, std::function<void(ipc::GroupParams&)>>> changes = {
      {"ranks", set(&ipc::GroupParams::ranks)},
      {"experts", set(&ipc::GroupParams::experts)},
      {"hidden", set(&ipc::GroupParams::hidden)},
      {"topk", set(&ipc::GroupParams::topk)},
      {"side_bytes", set(&ipc::GroupParams::side_bytes)},
      {"channels", set(&ipc::GroupParams::channels)},
      {"depth", set(&ipc::GroupParams::depth)},
      {"ring_slots", set(&ipc::GroupParams::ring_slots)},
      {"chunk_bytes", set(&ipc::GroupParams::chunk_bytes)},
      {"max_handles", set(&ipc::GroupParams::max_handles)},
      {"abort_on_refusal", [](ipc::GroupParams& p) { p.abort_on_refusal = true; }},
      {"expert_to_rank", [](ipc::GroupParams& p) { p.expert_rank.assign(8, 0); }},
  };
  for (const auto& [name, change] : changes) {
    sent_.clear();
    Coordinator fresh(GroupKey{1}, secret_, [this](const DaemonEntry& to, GroupMessage m) {
      sent_.push_back({to.host, std::move(m)});
    });
    auto different = params(4);
    change(different);
    fresh.on_join(host(1), {0, secret_, "a", params(4)});
    fresh.on_join(host(1), {1, secret_, "a", different});
    const auto refused = sent<RefusedMessage>();
    ASSERT_EQ(refused.size(), 1U) << name;
    EXPECT_THAT(refused[0].second.reason.message(), HasSubstr("parameter " + name + " differs"));
  }
}

TEST_F(CoordinatorTest, ExpertMapsAreComparedExpertByExpert) {
  const auto mapped = [](std::vector<std::uint32_t> map) {
    auto p = params(32);
    p.experts = static_cast<std::uint32_t>(map.size());
    p.expert_rank = std::move(map);
    return p;
  };
  join(1, 0, mapped({3, 1, 0}));
  join(1, 1, mapped({3, 1, 0}));
  join(2, 2, mapped({3, 0, 31}));
  const auto refused = sent<RefusedMessage>();
  ASSERT_EQ(refused.size(), 2U);
  EXPECT_EQ(refused[0].second.reason.code(), Code::mismatch);
  EXPECT_THAT(refused[0].second.reason.message(), HasSubstr("expert_to_rank[1]: 0 on rank 2; 1 on ranks 0 and 1"));
}

TEST_F(CoordinatorTest, AnExpertMapAgainstTheDefault) {
  auto spelled_out = params(4);
  spelled_out.expert_rank = {0, 0, 1, 1, 2, 2, 3, 3};  // what the default means
  join(1, 0, params(4));
  join(1, 1, spelled_out);
  EXPECT_TRUE(sent<RefusedMessage>().empty());
  auto other = spelled_out;
  std::swap(other.expert_rank[5], other.expert_rank[6]);
  join(1, 2, other);
  const auto refused = sent<RefusedMessage>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_THAT(refused[0].second.reason.message(),
              HasSubstr("expert_to_rank[5]: 2 on rank 1; 2 (default) on rank 0; 3 on rank 2"));
}

TEST_F(CoordinatorTest, TwoProcessesWithOneRankAreNamed) {
  join(1, 0, params(2));
  join(2, 0, params(2));
  const auto refused = sent<RefusedMessage>();
  ASSERT_EQ(refused.size(), 2U) << "both hosts are told";
  EXPECT_EQ(refused[0].second.reason.code(), Code::invalid_argument);
  EXPECT_THAT(refused[0].second.reason.message(), HasSubstr("rank 0 joined twice"));
  EXPECT_TRUE(coordinator_.finished());
}

TEST_F(CoordinatorTest, AWrongSecretIsTurnedAwayAlone) {
  join(1, 0, params(2));
  coordinator_.on_join(host(2), {1, {}, "tcp://x", params(2)});
  const auto refused = sent<RefusedMessage>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].first, 2);
  EXPECT_EQ(refused[0].second.reason.code(), Code::permission);
  EXPECT_THAT(coordinator_.missing(), ElementsAre(1));
}

TEST_F(CoordinatorTest, AWithdrawnRankMayJoinAgainFromElsewhere) {
  const Status gone(Code::rank_lost, "rank 0 lost: its process ended");
  join(1, 0, params(2));
  coordinator_.on_withdraw(host(5), {0, gone});  // not its daemon
  EXPECT_THAT(coordinator_.missing(), ElementsAre(1));
  coordinator_.on_withdraw(host(1), {0, gone});
  EXPECT_TRUE(coordinator_.missing().empty()) << "nobody is here: the number of ranks is not known";
  join(2, 0, params(2));
  join(2, 1, params(2));
  const auto maps = sent<MapMessage>();
  ASSERT_EQ(maps.size(), 1U) << "the first host takes no part";
  EXPECT_EQ(maps[0].first, 2);
}

TEST_F(CoordinatorTest, TheHostWithTheFewestProxiesSaysHowManyServeTheGroup) {
  join(1, 0, params(3), 4);
  join(2, 1, params(3), 2);
  join(3, 2, params(3), 3);
  const auto maps = sent<MapMessage>();
  ASSERT_EQ(maps.size(), 3U);
  for (const auto& [to, map] : maps) EXPECT_EQ(map.proxies, 2U);
}

TEST_F(CoordinatorTest, ALossBeforeTheCommitRefusesForEverybodyLeft) {
  join(1, 0, params(2));
  join(2, 1, params(2));
  coordinator_.on_lost({host(7), "tcp://h7"}, "unknown host");
  coordinator_.on_lost({host(2), "tcp://h1"}, "an earlier daemon of that host");
  EXPECT_FALSE(coordinator_.finished());
  coordinator_.on_lost({host(2), "tcp://h2"}, "no heartbeat");
  const auto refused = sent<RefusedMessage>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].first, 1);
  EXPECT_EQ(refused[0].second.reason.code(), Code::peer_lost);
  EXPECT_THAT(refused[0].second.reason.message(), HasSubstr("ranks 1 was lost"));
}

TEST_F(CoordinatorTest, ARankThatEndsWhileWiringEndsTheGroup) {
  join(1, 0, params(1));
  coordinator_.on_withdraw(host(1), {0, {Code::peer_lost, "no path to rank 3"}});
  const auto refused = sent<RefusedMessage>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].second.reason.code(), Code::peer_lost);
  EXPECT_EQ(refused[0].second.reason.message(), "no path to rank 3");
  join(1, 0, params(1));
  EXPECT_EQ(sent<RefusedMessage>().back().second.reason.code(), Code::peer_lost);
}

TEST_F(CoordinatorTest, WhoHasNotAttachedIsNamedUpToTheCommit) {
  join(1, 0, params(4));
  join(2, 1, params(4));
  join(2, 2, params(4));
  EXPECT_EQ(coordinator_.waits_for(), "rank 3 to join");
  join(2, 3, params(4));
  EXPECT_EQ(coordinator_.waits_for(), "ranks 0-3 to attach their memory");
  coordinator_.on_attaching(host(1), {});
  coordinator_.on_attaching(host(2), {3});
  coordinator_.on_attaching(host(9), {0});  // a stranger
  EXPECT_EQ(coordinator_.waits_for(), "rank 3 to attach its memory");
  coordinator_.announce_missing();
  ASSERT_EQ(sent<MissingMessage>().size(), 2U);
  EXPECT_THAT(sent<MissingMessage>()[0].second.ranks, ElementsAre(3));
  coordinator_.on_attaching(host(2), {});
  coordinator_.on_wired(host(1));
  EXPECT_EQ(coordinator_.waits_for(), "the paths to the daemons of ranks 1-3");
  coordinator_.on_wired(host(2));
  EXPECT_EQ(coordinator_.waits_for(), "");
}

TEST_F(CoordinatorTest, MissingIsAnnouncedOnlyUntilTheEnd) {
  join(1, 1, params(3));
  coordinator_.announce_missing();
  ASSERT_EQ(sent<MissingMessage>().size(), 1U);
  EXPECT_THAT(sent<MissingMessage>()[0].second.ranks, ElementsAre(0, 2));
  coordinator_.refuse({Code::timeout, "too late"});
  coordinator_.announce_missing();
  EXPECT_EQ(sent<MissingMessage>().size(), 1U);
}

TEST(RankList, ReadsLikeASentence) {
  EXPECT_EQ(rank_list({}), "");
  EXPECT_EQ(rank_list({3}), "3");
  EXPECT_EQ(rank_list({3, 4}), "3 and 4");
  EXPECT_EQ(rank_list({1, 3, 4}), "1, 3 and 4");
  EXPECT_EQ(rank_list({3, 5, 6, 7, 12}), "3, 5-7 and 12");
}

}  // namespace
}  // namespace railhead::daemon
