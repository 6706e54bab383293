// epctl against the real epd, and a real client of it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "railhead/railhead.h"
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
  Program epd_{{EPD_PROGRAM, "--config", "none", "--socket", socket_, "--log.target", "stderr", "--drain_s", "0"}};
};

// A session with a group of one rank.
class Client {
 public:
  explicit Client(const std::string& socket) {
    rh_session_config session{};
    session.size = sizeof(session);
    session.daemon = socket.c_str();
    session.job = "job-7";
    good(rh_session_open(&session, &session_));
    rh_unique_id id{};
    good(rh_unique_id_create(session_, &id));
    rh_group_config group{};
    group.size = sizeof(group);
    group.ranks = 1;
    group.experts = 4;
    group.hidden = 16;
    group.topk = 2;
    good(rh_group_create(session_, &id, &group, &group_));
  }
  ~Client() { rh_session_close(session_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

 private:
  static void good(rh_status status) { ASSERT_EQ(status, RH_OK) << rh_last_error(); }
  rh_session* session_ = nullptr;
  rh_group* group_ = nullptr;
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
  const Client client(socket_);
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
  const Client client(socket_);
  const std::string name = epctl_json({"ls", "groups"})["groups"][0]["group"];
  const Ran evicted = epctl({"evict", "--group", name.substr(0, 4), "--rank", "0", "--reason", "for the test"});
  EXPECT_EQ(evicted.exit_code, 0) << evicted.err;
  EXPECT_TRUE(epd_.await_error("evicted by an operator: for the test")) << epd_.error();
  EXPECT_EQ(epctl({"evict", "--group", name, "--rank", "0"}).exit_code, 1) << "a second time";
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
  const Client client(socket_);
  epd_.signal(SIGTERM);
  epd_.drain();
  const int status = epd_.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << epd_.error();
}

}  // namespace
}  // namespace railhead::epctl
