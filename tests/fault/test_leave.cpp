// Leaving is not collective, joining is: ranks end in any order and way, come late, or never.
#include <algorithm>
#include <functional>
#include <random>

#include "tests/fault/world.hpp"

namespace railhead::test {
namespace {

using testing::HasSubstr;

class Leave : public testing::TestWithParam<std::uint32_t> {
 protected:
  Leave() : world_(GetParam(), {"--join_log_s", "1"}) {}
  [[nodiscard]] std::uint32_t host(std::size_t r) const { return static_cast<std::uint32_t>(r % GetParam()); }
  // Three ranks in no group yet; the function lets one join.
  std::function<void(std::size_t)> three_who_may_join() {
    for (std::size_t r = 0; r < 3; ++r) world_.add_rank(host(r));
    return [this, id = world_.rank(0).ask("id").text](std::size_t r) {
      world_.rank(r).send("join id=" + id + " ranks=3 rank=" + std::to_string(r) + " join_ms=60000");
    };
  }
  World world_;
};

// Each goes as soon as its own last round is complete, while the others may still be in theirs.
TEST_P(Leave, RanksEndInAnyOrderAndAnyWay) {
  const unsigned seed = 7;
  std::mt19937 random(seed);
  const auto base = world_.settled_holdings();
  for (int i = 0; i < (soak() ? 50 : 5); ++i) {
    world_.forget_ranks();
    std::vector<std::string> ways = {"exit code=0", "_exit code=0", "close", "close_session", "exit code=0"};
    std::shuffle(ways.begin(), ways.end(), random);
    std::vector<std::uint32_t> host_of_rank;
    for (std::size_t r = 0; r < ways.size(); ++r) host_of_rank.push_back(host(r));
    world_.populate(host_of_rank);
    for (std::size_t r = 0; r < ways.size(); ++r) {
      world_.rank(r).send("round n=20 tokens=" + std::to_string(random() % 40));
      world_.rank(r).send(ways[r]);
    }
    for (std::size_t r = 0; r < ways.size(); ++r) {
      const Reply reply = world_.rank(r).reply();
      EXPECT_EQ(reply.status, "ok") << "rank " << r << " then " << ways[r] << ": " << reply.text;
      world_.rank(r).process().close_input();
      EXPECT_EQ(world_.rank(r).process().wait(Milliseconds(5'000)), 0) << "rank " << r << " " << ways[r];
    }
  }
  world_.forget_ranks();
  for (std::uint32_t h = 0; h < GetParam(); ++h) world_.expect_freed(h, base[h]);
}

TEST_P(Leave, TheOthersLearnThatARankClosed) {
  world_.populate({host(0), host(1), host(2)});
  world_.expect_good(world_.everybody(), "round");
  ASSERT_EQ(world_.rank(1).ask("close").status, "ok");
  for (const std::size_t r : {0U, 2U}) {
    const Reply reply = world_.rank(r).ask("round endless");
    EXPECT_EQ(reply.status, "rank_lost") << reply.text;
    EXPECT_THAT(reply.text, HasSubstr("rank 1 left the group after op 2"));
  }
}

TEST_P(Leave, ALateRankIsNamedInWhyAndInTheLog) {
  const auto join = three_who_may_join();
  join(0);
  join(1);
  const Json wait =
      world_.why(host(1), [](const Json& w) { return w.contains("missing") && w["missing"].size() == 1; });
  EXPECT_EQ(wait["missing"][0], 2);
  EXPECT_TRUE(eventually([&] { return world_.host(0).log().find(" s for rank 2 to join") != std::string::npos; }));
  join(2);
  for (const Reply& reply : world_.replies(world_.everybody())) EXPECT_EQ(reply.status, "ok") << reply.text;
  world_.expect_good(world_.everybody(), "round");
}

TEST_P(Leave, AJoinThatEndsAtItsLimitNamesTheMissingAndLeavesNothing) {
  (void)world_.settled_holdings();
  for (std::size_t r = 0; r < 2; ++r) world_.add_rank(host(r));
  const auto base = world_.holdings(host(1));
  const Reply id = world_.rank(0).ask("id");
  for (std::size_t r = 0; r < 2; ++r) {
    world_.rank(r).send("join id=" + id.text + " ranks=4 rank=" + std::to_string(r) + " join_ms=1500");
  }
  for (const Reply& reply : world_.replies(world_.everybody())) {
    EXPECT_EQ(reply.status, "timeout") << reply.text;
    EXPECT_THAT(reply.text, HasSubstr("1500 ms"));
    EXPECT_THAT(reply.text, HasSubstr("2 and 3"));
  }
  world_.expect_freed(host(1), base);
  world_.make_group(world_.everybody());
  world_.expect_good(world_.everybody(), "round");
}

TEST_P(Leave, AKilledRankDuringTheJoinMayBeReplaced) {
  const auto join = three_who_may_join();
  join(0);
  join(1);
  world_.why(host(0), [](const Json& w) { return w.contains("missing") && w["missing"].size() == 1; });
  world_.rank(1).process().signal(SIGKILL);
  world_.why(host(0), [](const Json& w) { return w.contains("missing") && w["missing"].size() == 2; });
  join(2);
  world_.why(host(0), [](const Json& w) { return w.contains("missing") && w["missing"] == Json::array({1}); });
  world_.replace_rank(1, host(1));
  join(1);
  for (const Reply& reply : world_.replies(world_.everybody())) EXPECT_EQ(reply.status, "ok") << reply.text;
  world_.expect_good(world_.everybody(), "round");
}

INSTANTIATE_TEST_SUITE_P(Hosts, Leave, testing::Values(1U, 2U), [](const auto& i) { return std::to_string(i.param); });

}  // namespace
}  // namespace railhead::test
