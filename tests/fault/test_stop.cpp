// A rank that is stopped: the others wait and can say for whom; it goes on, or is evicted and does no harm when it
// wakes.
#include <poll.h>

#include "tests/fault/world.hpp"

namespace railhead::test {
namespace {

using testing::HasSubstr;

class Stop : public testing::TestWithParam<std::uint32_t> {
 protected:
  Stop() : world_(GetParam()) {}
  void populate(std::size_t ranks, const std::string& parameters = {}) {
    std::vector<std::uint32_t> host_of_rank;
    for (std::size_t r = 0; r < ranks; ++r) host_of_rank.push_back(static_cast<std::uint32_t>(r % GetParam()));
    world_.populate(host_of_rank, parameters);
  }
  // The only group there is that has not ended.
  std::string group_name(std::uint32_t host) {
    const Json snapshot = world_.host(host).snapshot("groups");
    for (const Json& group : snapshot["groups"]) {
      if (group["state"] == "running") return group["group"];
    }
    return "none";
  }
  World world_;
};

TEST_P(Stop, WhyNamesTheStoppedRankAndItGoesOn) {
  populate(3);
  world_.expect_good(world_.everybody(), "round n=2");
  world_.rank(2).process().signal(SIGSTOP);
  world_.send(world_.everybody(), "round");
  const Json wait = world_.why(0, [](const Json& w) { return w.value("waits_for_rank", -1) == 2; });
  EXPECT_EQ(wait.value("op", 0), 5);
  EXPECT_EQ(wait.value("phase", ""), "headers");
  EXPECT_EQ(wait.value("got", 0), 2);
  EXPECT_EQ(wait.value("of", 0), 3);
  EXPECT_THAT(wait.value("text", ""), HasSubstr("for rank 2, got 2 of 3"));
  world_.rank(2).process().signal(SIGCONT);
  for (const Reply& reply : world_.replies(world_.everybody())) EXPECT_EQ(reply.status, "ok") << reply.text;
}

TEST_P(Stop, EvictedInTheMiddleAndThawedItChangesNothing) {
  const int rounds = soak() ? 40 : 4;
  for (int i = 0; i < rounds && !HasFailure(); ++i) {
    world_.forget_ranks();
    populate(3, "hidden=512");
    const std::vector<std::size_t> survivors = {0, 2};
    const std::uint32_t host = 1 % GetParam();  // of the victim
    world_.send(world_.everybody(), "round endless tokens=1024");
    ::poll(nullptr, 0, 15 + 7 * i);  // somewhere inside
    world_.rank(1).process().signal(SIGSTOP);
    world_.host(host).evict(group_name(host), 1, "it is stopped");
    for (const Reply& reply : world_.replies(survivors)) {
      EXPECT_EQ(reply.status, "rank_lost") << reply.text;
      EXPECT_THAT(reply.text, HasSubstr("rank 1"));
    }
    // What is handed out now must stay as it is.
    world_.make_group(survivors, "hidden=512");
    world_.expect_good(survivors, "canary bytes=8388608");
    world_.rank(1).process().signal(SIGCONT);
    const Reply thawed = world_.rank(1).reply();
    EXPECT_EQ(thawed.status, "rank_lost") << thawed.text;
    EXPECT_THAT(thawed.text, HasSubstr("it is stopped"));
    world_.expect_good(survivors, "round n=3");
    for (const Reply& reply : world_.ask(survivors, "check")) {
      EXPECT_EQ(reply.status, "ok") << reply.text;
      EXPECT_EQ(reply.text, std::to_string(2 * 8388608));
    }
  }
}

TEST_P(Stop, AnEvictedSessionIsToldSoAndMayOpenANewOne) {
  populate(2);
  world_.expect_good(world_.everybody(), "round");
  const std::uint32_t host = 1 % GetParam();
  std::uint32_t session = 0;
  const Json snapshot = world_.host(host).snapshot("sessions");
  for (const Json& s : snapshot["sessions"]) {
    if (s["pid"] == world_.rank(1).pid()) session = s["session"];
  }
  world_.host(host).evict_session(session, "for the test");
  world_.send(world_.everybody(), "round endless");
  for (const Reply& reply : world_.replies(world_.everybody())) EXPECT_EQ(reply.status, "rank_lost") << reply.text;
  const Reply refused = world_.rank(1).ask("id");
  EXPECT_EQ(refused.status, "invalid_usage");
  EXPECT_THAT(refused.text, HasSubstr("evicted by an operator: for the test"));
  ASSERT_EQ(world_.rank(1).ask("close_session").status, "ok");
  ASSERT_EQ(world_.rank(1).ask("open").status, "ok");
  world_.make_group(world_.everybody());
  world_.expect_good(world_.everybody(), "round");
}

INSTANTIATE_TEST_SUITE_P(Hosts, Stop, testing::Values(1U, 2U), [](const auto& i) { return std::to_string(i.param); });

}  // namespace
}  // namespace railhead::test
