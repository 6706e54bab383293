// A daemon killed, or told to stop: every call says so within a second, and the same process works on with a new one.
#include "tests/fault/world.hpp"
#include "tests/support/faults.hpp"

namespace railhead::test {
namespace {

using testing::HasSubstr;

double ms_between(std::uint64_t from, std::uint64_t to) {
  return to < from ? 0 : static_cast<double>(to - from) / 1e6;
}

std::uint64_t kill_daemon(World& world, std::uint32_t host) {
  const std::uint64_t at = now_ns();
  world.host(host).process().signal(SIGKILL);
  EXPECT_TRUE(world.host(host).process().wait(Milliseconds(5'000)));
  return at;
}

void expect_lost(const Reply& reply, std::uint64_t since) {
  EXPECT_EQ(reply.status, "daemon_lost") << reply.text;
  EXPECT_LT(ms_between(since, reply.at_ns), 1000) << reply.text;
}

TEST(DaemonKilled, EveryCallSaysSoAndReopeningWorks) {
  World world(1);
  world.populate({0, 0, 0});
  world.expect_good(world.everybody(), "round");
  world.add_rank(0);
  const Reply id = world.rank(3).ask("id");
  world.rank(3).send("join id=" + id.text + " ranks=2 rank=0 join_ms=60000");  // waits for a rank that never comes
  world.rank(0).send("round");                                                 // waits in an operation
  world.why(0, [](const Json& w) { return w.value("phase", "") == "headers"; });
  world.why(0, [](const Json& w) { return w.contains("missing"); });
  const std::uint64_t killed = kill_daemon(world, 0);
  expect_lost(world.rank(0).reply(), killed);
  expect_lost(world.rank(3).reply(), killed);
  for (const char* const call : {"status", "round", "refused", "id"}) {
    const std::uint64_t asked = now_ns();
    expect_lost(world.rank(1).ask(call), asked);
  }
  const std::uint64_t asked = now_ns();
  expect_lost(world.rank(2).ask("plan"), asked);

  world.start_host(0);
  for (const std::size_t r : world.everybody()) {
    ASSERT_EQ(world.rank(r).ask("close_session").status, "ok");
    ASSERT_EQ(world.rank(r).ask("open").status, "ok");
  }
  world.make_group(world.everybody());
  world.expect_good(world.everybody(), "round n=3");
}

TEST(DaemonKilled, ItsPeersRanksAreToldWhoIsLost) {
  World world(2);
  world.populate({0, 0, 1, 1});
  world.expect_good(world.everybody(), "round n=2");
  world.send({0, 1}, "round endless");
  world.send({2, 3}, "round endless");
  const std::uint64_t killed = kill_daemon(world, 1);
  for (const std::size_t r : {2U, 3U}) expect_lost(world.rank(r).reply(), killed);
  std::vector<double> times;
  for (const std::size_t r : {0U, 1U}) {
    const Reply reply = world.rank(r).reply();
    EXPECT_EQ(reply.status, "peer_lost") << reply.text;
    EXPECT_THAT(reply.text, HasSubstr("ranks 2 and 3 on host"));
    times.push_back(ms_between(killed, reply.at_ns));
  }
  print_times("daemon killed to peer_lost on the other host", times);
  // The host that lives makes a group of its own.
  world.make_group({0, 1});
  world.expect_good({0, 1}, "round n=3");
}

// A host whose daemon keeps its identity, so that what others remember of the earlier one is in the new one's way.
struct Restarting {
  World& world;
  std::uint32_t host;
  std::vector<std::string> same_host = {"--host_id_file", world.path("host_id")};

  void start(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> flags = same_host;
    flags.insert(flags.end(), more.begin(), more.end());
    world.start_host(host, flags);
  }
  void restart(const std::vector<std::string>& more = {}) const {
    kill_daemon(world, host);
    start(more);
  }
};

// The group of everybody, one rank per host and number, has lost the daemon of `restarted`, and its ranks do not close
// it. New ones serve, with the id of each host.
void expect_served_again(World& world, std::uint32_t restarted) {
  std::vector<std::size_t> members = world.everybody();
  for (const std::size_t r : members) {
    if (r % world.hosts() != restarted) {
      EXPECT_EQ(world.rank(r).ask("round").status, "peer_lost");
      continue;
    }
    ASSERT_EQ(world.rank(r).ask("close_session").status, "ok");
    ASSERT_EQ(world.rank(r).ask("open").status, "ok");
  }
  for (std::uint32_t first = 0; first < world.hosts(); ++first) {
    world.make_group(members);
    world.expect_good(members, "round n=3");
    std::rotate(members.begin(), members.begin() + 1, members.end());
  }
  for (std::uint32_t h = 0; h < world.hosts(); ++h) {
    EXPECT_EQ(world.host(h).snapshot("status")["groups_running"], world.hosts());
  }
}

TEST(DaemonKilled, StartedAgainItServesItsRanksAndTheOtherHost) {
  World world(1);
  const Restarting host{world, 1};
  host.start();
  world.populate({0, 1, 0, 1});
  world.expect_good(world.everybody(), "round n=2");
  host.restart();
  expect_served_again(world, 1);
}

TEST(DaemonKilled, StartedAgainAtTheSameAddressItServes) {
  World world(1);
  const Restarting host{world, 1};
  host.start();
  const std::string mesh = world.host(1).snapshot("status")["mesh"];
  world.populate({0, 1, 0, 1});
  world.expect_good(world.everybody(), "round n=2");
  host.restart({"--mesh.bind", mesh});
  ASSERT_EQ(world.host(1).snapshot("status")["mesh"], mesh);
  expect_served_again(world, 1);
}

TEST(DaemonKilled, StartedAgainAndAgainItServesThreeHostsUnderFaults) {
  World world(1, {"--fabric.fault", all_faults(53)});
  const Restarting host{world, 1};
  host.start();
  world.start_host(2);
  world.populate({0, 1, 2});
  world.expect_good(world.everybody(), "round n=2");
  host.restart();
  // The second does not live long enough to be known everywhere.
  world.add_rank(1).send("join id=" + world.rank(0).ask("id").text + " ranks=2 rank=0");
  host.restart();
  world.forget_rank(3);
  expect_served_again(world, 1);
}

TEST(DaemonKilled, WhileAGroupIsMade) {
  World world(2);
  for (const std::uint32_t h : {0U, 1U, 1U}) world.add_rank(h);
  const Reply id = world.rank(1).ask("id");  // host 1 coordinates
  for (std::size_t r = 0; r < 2; ++r) {
    world.rank(r).send("join id=" + id.text + " ranks=3 rank=" + std::to_string(r) + " join_ms=60000");
  }
  world.why(0, [](const Json& w) { return w.contains("missing"); });
  const std::uint64_t killed = kill_daemon(world, 1);
  expect_lost(world.rank(1).reply(), killed);
  const Reply told = world.rank(0).reply();
  EXPECT_EQ(told.status, "peer_lost") << told.text;
  EXPECT_THAT(told.text, HasSubstr("coordinator"));
}

TEST(DaemonStopped, EndsGroupsWithItsReasonAndExitsWithZero) {
  World world(2, {"--drain_s", "0"});
  world.populate({0, 1, 0});
  world.expect_good(world.everybody(), "round");
  world.send({0, 2}, "round");  // rank 1 does not come
  world.why(0, [](const Json& w) { return w.value("phase", "") == "headers"; });
  world.host(0).process().signal(SIGTERM);
  for (const std::size_t r : {0U, 2U}) {
    const Reply reply = world.rank(r).reply();
    EXPECT_EQ(reply.status, "aborted") << reply.text;
    EXPECT_THAT(reply.text, HasSubstr("the daemon is stopping"));
  }
  EXPECT_EQ(world.host(0).process().wait(Milliseconds(5'000)), 0) << world.host(0).log();
  const Reply other = world.rank(1).ask("round");
  EXPECT_TRUE(other.status == "aborted" || other.status == "peer_lost") << other.status << other.text;
}

TEST(DaemonStopped, WaitsForSessionsAndRefusesNewOnesMeanwhile) {
  World world(1);
  world.populate({0, 0});
  world.host(0).process().signal(SIGTERM);
  ASSERT_TRUE(eventually([&] { return world.host(0).log().find("stopping; 2 sessions") != std::string::npos; }));
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t asked = now_ns();
    const Reply refused = world.new_process(0)->ask("open");
    EXPECT_EQ(refused.status, "unavailable") << refused.text;
    EXPECT_LT(ms_between(asked, refused.at_ns), 2000) << "refused, not kept waiting";
  }
  // Those that are in still work.
  world.expect_good(world.everybody(), "round n=3");
  world.expect_good(world.everybody(), "close_session");
  EXPECT_EQ(world.host(0).process().wait(Milliseconds(5'000)), 0) << world.host(0).log();
}

}  // namespace
}  // namespace railhead::test
