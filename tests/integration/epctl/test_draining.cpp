// A daemon between SIGTERM and its end: operators see what it waits for, newcomers are refused, and it ends in time.
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/epctl/client.hpp"
#include "tests/integration/epctl/fake_daemon.hpp"
#include "tests/integration/epctl/program.hpp"

namespace railhead::epctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class Draining : public testing::Test {
 protected:
  void start(const std::string& drain_s) {
    epd_ = std::make_unique<Program>(std::vector<std::string>{EPD_PROGRAM, "--config", "none", "--socket", socket_,
                                                              "--log.target", "stderr", "--drain_s", drain_s});
    ASSERT_TRUE(epd_->await_error("ready: socket")) << epd_->error();
  }
  void stop(const std::string& logged) {
    epd_->signal(SIGTERM);
    ASSERT_TRUE(epd_->await_error(logged)) << epd_->error();
  }
  void expect_ended() {
    epd_->drain();
    const int status = epd_->wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << epd_->error();
    EXPECT_FALSE(std::filesystem::exists(socket_));
  }
  [[nodiscard]] Ran epctl(std::vector<std::string> words) const {
    words.insert(words.end(), {"--socket", socket_, "--timeout", "30"});
    return run_epctl(std::move(words));
  }

  Folder folder_;
  std::string socket_ = folder_ / "epd.sock";
  std::unique_ptr<Program> epd_;
};

TEST_F(Draining, OperatorsSeeWhatItWaitsFor) {
  start("300");
  auto client = std::make_unique<Client>(socket_);
  ASSERT_EQ(client->make_group(1), RH_OK) << rh_last_error();
  stop("stopping; 1 session, 1 group still open");

  const Ran status = epctl({"status"});
  EXPECT_EQ(status.exit_code, 1) << status.err;
  EXPECT_THAT(status.out,
              StartsWith("DEGRADED\n  draining: 1 session, 1 group still open, since it was told to stop "));
  EXPECT_THAT(status.out, HasSubstr("s at the latest, new sessions and groups are refused"));

  const Ran as_json = epctl({"status", "--json"});
  EXPECT_EQ(as_json.exit_code, 1);
  const json parsed = json::parse(as_json.out);
  EXPECT_EQ(parsed["state"], "DEGRADED");
  EXPECT_EQ(parsed["reasons"].size(), 1U) << as_json.out;
  EXPECT_EQ(parsed["groups_running"], 1);
  EXPECT_LE(parsed["draining"]["ends_in_ms"], 300'000);
  EXPECT_GT(parsed["draining"]["ends_in_ms"], 200'000);
  EXPECT_TRUE(parsed["draining"].contains("since_ms"));

  const Ran why = epctl({"why"});
  EXPECT_EQ(why.exit_code, 0) << why.err;
  EXPECT_THAT(why.out, HasSubstr("waits for session 1 (pid " + std::to_string(::getpid()) + ") to close"));
  for (const char* const what : {"sessions", "groups", "arenas", "rings", "peers"}) {
    const Ran listed = epctl({"ls", what});
    EXPECT_EQ(listed.exit_code, 0) << what << listed.err;
  }
  EXPECT_THAT(epctl({"ls", "groups"}).out, HasSubstr("running"));

  client.reset();
  expect_ended();
}

TEST_F(Draining, NewSessionsAndGroupsAreRefusedWithTheReason) {
  start("300");
  Client client(socket_);
  ASSERT_EQ(client.make_group(1), RH_OK) << rh_last_error();
  rh_unique_id early{};
  ASSERT_EQ(client.make_id(early), RH_OK) << rh_last_error();
  stop("stopping; 1 session");

  rh_session_config config{};
  config.size = sizeof(config);
  config.daemon = socket_.c_str();
  rh_session* session = nullptr;
  EXPECT_EQ(rh_session_open(&config, &session), RH_UNAVAILABLE);
  EXPECT_THAT(rh_last_error(), HasSubstr("the daemon is shutting down: it takes no new sessions and groups"));

  rh_unique_id id{};
  EXPECT_EQ(client.make_id(id), RH_UNAVAILABLE);
  EXPECT_THAT(rh_last_error(), HasSubstr("the daemon is shutting down"));
  EXPECT_EQ(client.join(early, 0, 1), RH_UNAVAILABLE) << "nobody has joined it before";
  EXPECT_THAT(rh_last_error(), HasSubstr("the daemon is shutting down"));
}

TEST_F(Draining, AGroupThatIsBeingMadeIsCompleted) {
  start("300");
  Client first(socket_);
  Client second(socket_);
  rh_unique_id id{};
  ASSERT_EQ(first.make_id(id), RH_OK) << rh_last_error();
  std::thread joining([&] { EXPECT_EQ(first.join(id, 0, 2), RH_OK) << rh_last_error(); });
  const auto deadline = ipc::Deadline::after(std::chrono::seconds(30));
  while (epctl({"ls", "groups"}).out.find("joining") == std::string::npos && !deadline.expired()) continue;
  stop("stopping; 2 sessions, 1 group still open");
  EXPECT_EQ(second.join(id, 1, 2), RH_OK) << rh_last_error();
  joining.join();
}

TEST_F(Draining, ItEndsByItsDeadlineAndAbortsWhatIsLeft) {
  start("1");
  Client client(socket_);
  ASSERT_EQ(client.make_group(1), RH_OK) << rh_last_error();
  epd_->signal(SIGTERM);
  expect_ended();
  EXPECT_THAT(epd_->error(), HasSubstr("the time to drain is over: 1 session, 1 group still open"));
}

TEST_F(Draining, ASecondSigtermEndsItAtOnce) {
  start("300");
  Client client(socket_);
  ASSERT_EQ(client.make_group(1), RH_OK) << rh_last_error();
  stop("stopping; 1 session");
  stop("told to stop again");
  expect_ended();
}

}  // namespace
}  // namespace railhead::epctl
