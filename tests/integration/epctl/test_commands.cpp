#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/integration/epctl/fake_daemon.hpp"
#include "tests/integration/epctl/program.hpp"

namespace railhead::epctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Ran ask(const std::string& what, const json& answer, std::vector<std::string> words) {
  const Folder folder;
  const std::string socket = folder / "epd.sock";
  const FakeDaemon daemon(socket, {.snapshots = {{what, answer.dump()}}});
  words.insert(words.end(), {"--socket", socket});
  return run_epctl(words);
}

TEST(Why, SaysSoWhenNothingWaits) {
  const Ran ran = ask("why", {{"waits", json::array()}}, {"why"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "nothing waits\n");
}

TEST(Why, PrintsOneSentencePerWait) {
  const json waits = {{"waits",
                       {{{"group", "3f2a91c0"}, {"text", "rank 3 waits in op 12 for rank 1"}},
                        {{"session", 4}, {"text", "session 4 (pid 41) is over"}}}}};
  const Ran ran = ask("why", waits, {"why"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "group 3f2a91c0: rank 3 waits in op 12 for rank 1\nsession 4 (pid 41) is over\n");
  EXPECT_EQ(json::parse(ask("why", waits, {"why", "--json"}).out), waits);
}

TEST(List, SessionsAreAlignedAndHarmless) {
  const json sessions = {
      {"sessions",
       {{{"session", 1},
         {"pid", 4100},
         {"uid", 0},
         {"job", "evil\x1b[2J\n"},
         {"age_s", 3.25},
         {"ended", false},
         {"groups", {{{"group", "3f2a91c0"}, {"rank", 2}}}}},
        {{"session", 12}, {"pid", 7}, {"uid", 1000}, {"job", ""}, {"age_s", 90061.0}, {"ended", true}}}}};
  const Ran ran = ask("sessions", sessions, {"ls", "sessions"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "SESSION   PID   UID  JOB        AGE      STATE  GROUP:RANK\n"
            "      1  4100     0  evil?[2J?  3.2 s    open   3f2a91c0:2\n"
            "     12     7  1000  -          1 d 1 h  ended  -\n");
}

TEST(List, GroupsShowWhoIsMissingAndHowTheyEnded) {
  const json groups = {
      {"groups",
       {{{"group", "aa"},
         {"state", "joining"},
         {"ranks", 4},
         {"hosts", 0},
         {"missing", {1, 3}},
         {"local_ranks", json::array()}},
        {{"group", "bb"},
         {"state", "ended"},
         {"ranks", 2},
         {"hosts", 1},
         {"epoch", 9},
         {"local_ranks",
          {{{"rank", 0}, {"present", true}, {"completed", 17}}, {{"rank", 1}, {"present", false}, {"completed", 12}}}},
         {"ended", {{"code", "rank_lost"}, {"reason", "rank 1 (pid 41) lost: its process ended"}}}}}}};
  const Ran ran = ask("groups", groups, {"ls", "groups"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("missing: 1 3"));
  EXPECT_THAT(ran.out, HasSubstr("12  0 1(gone)    rank 1 (pid 41) lost: its process ended"));
}

TEST(List, ArenasRingsAndPeersHaveTables) {
  const Ran arenas = ask("arenas",
                         {{"arenas",
                           {{{"group", "aa"},
                             {"rank", 0},
                             {"segments", 2},
                             {"bytes", 3 << 20},
                             {"rail_bytes", 512},
                             {"quarantined", true}}}}},
                         {"ls", "arenas"});
  EXPECT_THAT(arenas.out, HasSubstr("3.0 MiB"));
  EXPECT_THAT(arenas.out, HasSubstr("quarantined"));
  const Ran rings = ask("rings",
                        {{"rings",
                          {{{"group", "aa"},
                            {"rank", 0},
                            {"direction", "tx"},
                            {"stage", "dispatch"},
                            {"home", 1},
                            {"channel", 0},
                            {"peer", 2},
                            {"head", 70},
                            {"tail", 74}}}}},
                        {"ls", "rings"});
  EXPECT_THAT(rings.out, HasSubstr("dispatch"));
  EXPECT_THAT(rings.out, HasSubstr("70    74"));
  const Ran peers =
      ask("peers",
          {{"mesh", {{{"host_id", "ab"}, {"endpoint", "tcp://h:1"}, {"up", false}, {"round_trip_us", 90}}}},
           {"rails", json::array()}},
          {"ls", "peers"});
  EXPECT_THAT(peers.out, HasSubstr("tcp://h:1  down"));
  EXPECT_THAT(peers.out, HasSubstr("no rails"));
}

TEST(List, JsonIsTheDaemonsAnswer) {
  const json answer = {{"mesh", json::array()}, {"rails", json::array()}};
  EXPECT_EQ(json::parse(ask("peers", answer, {"ls", "peers", "--json"}).out), answer);
}

TEST(List, AnswerThatIsNoJsonIsAnError) {
  const Folder folder;
  const std::string socket = folder / "epd.sock";
  const FakeDaemon daemon(socket, {.snapshots = {{"groups", "{"}}});
  const Ran ran = run_epctl({"ls", "groups", "--socket", socket});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("not a JSON object"));
}

TEST(Evict, PassesSessionAndReason) {
  const Folder folder;
  FakeDaemon daemon(folder / "epd.sock", {});
  const Ran ran = run_epctl({"evict", "--session", "7", "--reason", "stuck", "--socket", folder / "epd.sock"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "evicted session 7\n");
  EXPECT_EQ(daemon.seen().session, 7U);
  EXPECT_EQ(daemon.seen().reason, "stuck");
}

TEST(Evict, PassesGroupAndRank) {
  const Folder folder;
  FakeDaemon daemon(folder / "epd.sock", {});
  const Ran ran = run_epctl({"evict", "--group", "3f2a", "--rank", "0", "--json", "--socket", folder / "epd.sock"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["evicted"], (json{{"group", "3f2a"}, {"rank", 0}}));
  EXPECT_EQ(daemon.seen().group, "3f2a");
  EXPECT_EQ(daemon.seen().rank, 0);
}

TEST(Evict, RefusalIsOneWithTheReason) {
  const Folder folder;
  const FakeDaemon daemon(folder / "epd.sock", {.evict_error = {Code::invalid_argument, "no session 7"}});
  const Ran ran = run_epctl({"evict", "--session", "7", "--socket", folder / "epd.sock"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.err, "epctl: no session 7\n");
  const Ran as_json = run_epctl({"evict", "--session", "7", "--json", "--socket", folder / "epd.sock"});
  EXPECT_EQ(as_json.exit_code, 1);
  EXPECT_EQ(json::parse(as_json.out)["error"]["code"], "invalid_argument");
}

TEST(Usage, MistakesAreNoStateOfTheDaemon) {
  const std::vector<std::vector<std::string>> mistakes = {
      {},
      {"ls"},
      {"ls", "nothing"},
      {"evict"},
      {"evict", "--session", "0"},
      {"evict", "--rank", "1"},
      {"evict", "--group", "aa"},
      {"evict", "--session", "1", "--group", "aa", "--rank", "1"},
      {"status", "--timeout", "0"},
      {"status", "--nonsense"},
      {"keygen"},
  };
  for (const auto& words : mistakes) {
    const Ran ran = run_epctl(words);
    EXPECT_EQ(ran.exit_code, 64) << testing::PrintToString(words);
    EXPECT_FALSE(ran.err.empty()) << testing::PrintToString(words);
  }
}

TEST(Usage, HelpOfEveryCommandNamesExitCodes) {
  for (const char* const command : {"status", "why", "ls", "evict", "keygen", "version"}) {
    const Ran ran = run_epctl({command, "--help"});
    EXPECT_EQ(ran.exit_code, 0) << command;
    EXPECT_THAT(ran.out, HasSubstr("Exit codes: ")) << command;
    EXPECT_THAT(ran.out, HasSubstr("--json")) << command;
  }
  EXPECT_THAT(run_epctl({"--help"}).out, HasSubstr("Exit codes: "));
}

TEST(Version, KnowsItselfWithoutADaemon) {
  const Folder folder;
  const Ran ran = run_epctl({"version", "--json", "--socket", folder / "none.sock"});
  EXPECT_EQ(ran.exit_code, 0);
  const auto parsed = json::parse(ran.out);
  EXPECT_FALSE(parsed["epctl"]["version"].get<std::string>().empty());
  EXPECT_TRUE(parsed["daemon"].is_null());
  EXPECT_EQ(parsed["daemon_error"]["code"], "unavailable");
}

TEST(Version, NamesTheDaemonsRelease) {
  const json status = {{"version", "0.9.9 (abc)"}, {"protocol", 1}, {"socket", "/s"}};
  const Ran ran = ask("status", status, {"version"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("daemon  0.9.9 (abc), protocol 1"));
}

}  // namespace
}  // namespace railhead::epctl
