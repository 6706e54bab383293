// A rank that is stopped: the others wait and can say for whom; it goes on, or is evicted and does no harm when it
// wakes.
#include <poll.h>

#include <algorithm>

#include "tests/fault/world.hpp"
#include "tests/support/faults.hpp"

namespace railhead::test {
namespace {

using testing::HasSubstr;

class Stop : public testing::TestWithParam<std::uint32_t> {
 protected:
  explicit Stop(const std::vector<std::string>& flags = {}) : world_(GetParam(), flags) {}
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
  // Memory that a host keeps aside until nobody there can write to it any more.
  std::size_t quarantined(std::uint32_t host) {
    const Json snapshot = world_.host(host).snapshot("arenas");
    return static_cast<std::size_t>(std::count_if(snapshot["arenas"].begin(), snapshot["arenas"].end(),
                                                  [](const Json& arena) { return arena["quarantined"] == true; }));
  }
  // Rank 1 of five, which shares its host, is stopped that long after the start of endless rounds.
  void evict_and_thaw(int after_ms);

  World world_;
};

void Stop::evict_and_thaw(int after_ms) {
  world_.forget_ranks();
  populate(5, "hidden=512");
  const std::vector<std::size_t> survivors = {0, 2, 3, 4};
  const std::uint32_t host = 1 % GetParam();               // of the victim
  const std::size_t neighbours = GetParam() == 1 ? 5 : 2;  // ranks there
  world_.expect_good(world_.everybody(), "round tokens=1024");
  world_.send(world_.everybody(), "round endless tokens=1024");
  ::poll(nullptr, 0, after_ms);  // somewhere inside
  world_.rank(1).process().signal(SIGSTOP);
  world_.host(host).evict(group_name(host), 1, "it is stopped");
  for (const Reply& reply : world_.replies(survivors)) {
    EXPECT_EQ(reply.status, "rank_lost") << reply.text;
    EXPECT_THAT(reply.text, HasSubstr("rank 1"));
  }
  // What is handed out now must stay as it is.
  world_.make_group(survivors, "hidden=512");
  world_.expect_good(survivors, "canary bytes=8388608");
  EXPECT_EQ(quarantined(host), neighbours) << "the stopped rank may still write to them";
  world_.rank(1).process().signal(SIGCONT);
  const Reply thawed = world_.rank(1).reply();
  EXPECT_EQ(thawed.status, "rank_lost") << thawed.text;
  EXPECT_THAT(thawed.text, HasSubstr("it is stopped"));
  world_.expect_good(survivors, "round n=3");
  EXPECT_TRUE(eventually([&] { return quarantined(host) == 0; })) << world_.host(host).snapshot("arenas").dump();
  for (const Reply& reply : world_.ask(survivors, "check")) {
    EXPECT_EQ(reply.status, "ok") << reply.text;
    EXPECT_EQ(reply.text, std::to_string(2 * 8388608));
  }
}

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
  for (int i = 0; i < rounds && !HasFailure(); ++i) evict_and_thaw(15 + 7 * i);
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

// The same with writes that come late, twice and out of order while the group ends.
class StopUnderFaults : public Stop {
 protected:
  StopUnderFaults() : Stop({"--fabric.fault", all_faults(51)}) {}
};

TEST_P(StopUnderFaults, EvictedInTheMiddleAndThawedItChangesNothing) {
  const int rounds = soak() ? 20 : 2;
  for (int i = 0; i < rounds && !HasFailure(); ++i) evict_and_thaw(15 + 7 * i);
}

INSTANTIATE_TEST_SUITE_P(Hosts, StopUnderFaults, testing::Values(2U),
                         [](const auto& i) { return std::to_string(i.param); });

}  // namespace
}  // namespace railhead::test
