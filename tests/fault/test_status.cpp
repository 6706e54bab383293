// What an operator sees of a daemon with trouble: its log, and what `epctl status` says.
#include <regex>

#include "tests/fault/world.hpp"

namespace railhead::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Seen {
  int exit_code = -1;
  Json json;
};

Seen epctl_status(World& world, std::uint32_t host) {
  ChildProcess epctl({EPCTL_PROGRAM, "status", "--json", "--socket", world.host(host).socket()},
                     {"IPATH_NO_BACKTRACE=1"}, world.path("epctl.log"));
  std::string text;
  try {
    while (const auto line = epctl.read_line(Milliseconds(20'000))) text += *line + "\n";
  } catch (const std::runtime_error&) {
    // The end of its output.
  }
  return {epctl.wait(Milliseconds(20'000)).value_or(-1), Json::parse(text, nullptr, false)};
}

// Waits until the state is this one.
Seen await_state(World& world, std::uint32_t host, const std::string& state) {
  Seen seen;
  EXPECT_TRUE(eventually(
      [&] {
        seen = epctl_status(world, host);
        return seen.json.is_object() && seen.json.value("state", "") == state;
      },
      Milliseconds(20'000)))
      << state << ": " << seen.json.dump();
  return seen;
}

TEST(OperatorSees, AStoppedRankUntilItGoesOn) {
  World world(2, {"--slow_after_s", "1"});
  world.populate({0, 0, 1});
  world.expect_good(world.everybody(), "round");
  EXPECT_EQ(await_state(world, 0, "READY").exit_code, 0);

  world.rank(1).process().signal(SIGSTOP);
  world.send(world.everybody(), "round");
  const std::regex slow("rank 0 has waited [0-9]+ ms in op 3: phase headers.*, got 2 of 3");
  EXPECT_TRUE(eventually([&] { return std::regex_search(world.host(0).log(), slow); }, Milliseconds(20'000)))
      << world.host(0).log();
  for (const std::uint32_t h : {0U, 1U}) {
    const Seen degraded = await_state(world, h, "DEGRADED");
    EXPECT_EQ(degraded.exit_code, 1);
    ASSERT_EQ(degraded.json["reasons"].size(), 1U) << degraded.json.dump();
    const std::string reason = degraded.json["reasons"][0];
    EXPECT_THAT(reason, HasSubstr(h == 0 ? "rank 0 has waited " : "rank 2 has waited "));
    EXPECT_THAT(reason, HasSubstr("in op 3: phase headers"));
  }

  world.rank(1).process().signal(SIGCONT);
  for (const Reply& reply : world.replies(world.everybody())) EXPECT_EQ(reply.status, "ok") << reply.text;
  for (const std::uint32_t h : {0U, 1U}) {
    const Seen ready = await_state(world, h, "READY");
    EXPECT_EQ(ready.exit_code, 0);
    EXPECT_TRUE(ready.json["reasons"].empty()) << ready.json.dump();
  }
}

TEST(OperatorSees, ALostPeerUntilItsGroupIsClosed) {
  World world(2);
  world.populate({0, 1});
  world.expect_good(world.everybody(), "round");
  world.host(1).process().signal(SIGKILL);
  ASSERT_TRUE(world.host(1).process().wait(Milliseconds(5'000)));
  const Seen degraded = await_state(world, 0, "DEGRADED");
  EXPECT_EQ(degraded.exit_code, 1);
  ASSERT_EQ(degraded.json["reasons"].size(), 1U) << degraded.json.dump();
  EXPECT_THAT(degraded.json["reasons"][0].get<std::string>(), HasSubstr(" 1 on host "));
  EXPECT_EQ(world.rank(0).ask("close").status, "ok");
  await_state(world, 0, "READY");
}

}  // namespace
}  // namespace railhead::test
