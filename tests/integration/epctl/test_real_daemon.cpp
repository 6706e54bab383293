// epctl against the real epd, and a real client of it.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/epctl/client.hpp"
#include "tests/integration/epctl/fake_daemon.hpp"
#include "tests/integration/epctl/program.hpp"

namespace railhead::epctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class RealDaemon : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(epd_.await_error("ready: socket")) << epd_.error(); }

  Ran epctl(std::vector<std::string> words) {
    words.insert(words.end(), {"--socket", socket_, "--timeout", "30"});
    return run_epctl(std::move(words));
  }
  json epctl_json(std::vector<std::string> words) {
    words.emplace_back("--json");
    const Ran ran = epctl(std::move(words));
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
    return json::parse(ran.out, nullptr, false);
  }

  Folder folder_;
  std::string socket_ = folder_ / "epd.sock";
  Program epd_{{EPD_PROGRAM, "--config", "none", "--socket", socket_, "--log.target", "stderr", "--drain_s", "0",
                "--join_log_s", "1"}};
};

TEST_F(RealDaemon, AnIdleOneIsReadyAndWaitsForNothing) {
  const Ran status = epctl({"status"});
  EXPECT_EQ(status.exit_code, 0) << status.out << status.err;
  EXPECT_THAT(status.out, testing::StartsWith("READY\n"));
  EXPECT_EQ(epctl({"why"}).out, "nothing waits\n");
  EXPECT_EQ(epctl({"ls", "sessions"}).out, "no sessions\n");
  EXPECT_EQ(epctl({"ls", "groups"}).out, "no groups\n");
  EXPECT_EQ(epctl({"ls", "arenas"}).out, "no arenas\n");
  for (const char* const what : {"rings", "peers"}) EXPECT_EQ(epctl({"ls", what}).exit_code, 0) << what;
  EXPECT_EQ(epctl_json({"version"})["daemon"]["socket"], socket_);
}

TEST_F(RealDaemon, EvictionOfNobodyIsRefused) {
  const Ran session = epctl({"evict", "--session", "9"});
  EXPECT_EQ(session.exit_code, 1);
  EXPECT_THAT(session.err, HasSubstr("no session 9"));
  const Ran group = epctl({"evict", "--group", "aa", "--rank", "0"});
  EXPECT_EQ(group.exit_code, 1);
  EXPECT_THAT(group.err, HasSubstr("no group whose name begins with 'aa'"));
}

TEST_F(RealDaemon, ShowsAClientAndItsGroup) {
  Client client(socket_);
  ASSERT_EQ(client.make_group(1), RH_OK) << rh_last_error();
  const json sessions = epctl_json({"ls", "sessions"})["sessions"];
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_EQ(sessions[0]["pid"], ::getpid());
  EXPECT_EQ(sessions[0]["job"], "job-7");
  const json groups = epctl_json({"ls", "groups"})["groups"];
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0]["state"], "running");
  EXPECT_EQ(groups[0]["local_ranks"][0]["pid"], ::getpid());
  EXPECT_EQ(epctl_json({"status"})["groups_running"], 1);
}

TEST_F(RealDaemon, EvictedRankEndsItsGroupWithTheReason) {
  Client client(socket_);
  ASSERT_EQ(client.make_group(1), RH_OK) << rh_last_error();
  const std::string name = epctl_json({"ls", "groups"})["groups"][0]["group"];
  const Ran evicted = epctl({"evict", "--group", name.substr(0, 4), "--rank", "0", "--reason", "for the test"});
  EXPECT_EQ(evicted.exit_code, 0) << evicted.err;
  EXPECT_TRUE(epd_.await_error("evicted by an operator: for the test")) << epd_.error();
  EXPECT_EQ(epctl({"evict", "--group", name, "--rank", "0"}).exit_code, 1) << "a second time";
}

TEST_F(RealDaemon, WhyNamesTheRanksThatAGroupWaitsFor) {
  Client client(socket_);
  std::thread joining([&client] { EXPECT_NE(client.make_group(3), RH_OK); });
  std::string why;
  const auto deadline = ipc::Deadline::after(std::chrono::seconds(30));
  while (why.find("waits for ranks 1 and 2 to join") == std::string::npos && !deadline.expired())
    why = epctl({"why"}).out;
  EXPECT_THAT(why, HasSubstr("waits for ranks 1 and 2 to join"));
  EXPECT_THAT(epctl({"ls", "groups"}).out, HasSubstr("joining"));
  // The daemon's end is the end of the call that waits.
  epd_.signal(SIGKILL);
  joining.join();
}

TEST_F(RealDaemon, EvictionByABeginningThatSeveralGroupsShareIsRefused) {
  Client client(socket_);
  // Names are hexadecimal: among 17, two begin with the same digit.
  for (int i = 0; i < 17; ++i) ASSERT_EQ(client.make_group(1), RH_OK) << rh_last_error();
  std::map<char, int> begins;
  const json listed = epctl_json({"ls", "groups"});
  for (const auto& group : listed["groups"]) ++begins[group["group"].get<std::string>().front()];
  const auto shared = std::find_if(begins.begin(), begins.end(), [](const auto& b) { return b.second > 1; });
  ASSERT_NE(shared, begins.end());
  const Ran ran = epctl({"evict", "--group", std::string(1, shared->first), "--rank", "0"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("the names of several groups begin with"));
  EXPECT_EQ(epctl_json({"status"})["groups_running"], 17);
}

TEST_F(RealDaemon, JobLabelThatIsNoTextHidesNobody) {
  const Client odd(socket_, "\xff\x1b[2J");
  const Client good(socket_, "good");
  EXPECT_EQ(epctl_json({"ls", "sessions"})["sessions"].size(), 2U);
  EXPECT_THAT(epctl({"ls", "sessions"}).out, testing::Not(HasSubstr("\x1b")));
}

TEST_F(RealDaemon, StoppedInTheProcessSenseIsFailed) {
  epd_.signal(SIGSTOP);
  const Ran ran = run_epctl({"status", "--socket", socket_, "--timeout", "0.2"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.out, HasSubstr("did not answer within 0.2 s"));
}

TEST_F(RealDaemon, EndedIsFailedAndEndsWithZero) {
  epd_.signal(SIGTERM);
  epd_.drain();
  const int status = epd_.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << epd_.error();
  const Ran ran = epctl({"status"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.out, HasSubstr("FAILED\n  no daemon at " + socket_));
}

TEST_F(RealDaemon, SigtermWithAClientEndsWithZero) {
  Client client(socket_);
  ASSERT_EQ(client.make_group(1), RH_OK) << rh_last_error();
  epd_.signal(SIGTERM);
  epd_.drain();
  const int status = epd_.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << epd_.error();
}

}  // namespace
}  // namespace railhead::epctl
