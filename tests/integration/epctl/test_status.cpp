#include <gmock/gmock.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/integration/epctl/fake_daemon.hpp"
#include "tests/integration/epctl/program.hpp"

namespace railhead::epctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string status_json(const std::string& state, const std::vector<std::string>& reasons) {
  return json{{"state", state},
              {"reasons", reasons},
              {"version", "0.1.0 (abc)"},
              {"protocol", 1},
              {"host_id", "00112233445566778899aabbccddeeff"},
              {"pid", 41},
              {"uptime_s", 75.2},
              {"socket", "/run/epd/epd.sock"},
              {"mesh", "tcp://10.0.0.1:4000"},
              {"fabric", {"tcp (FI_EP_MSG)"}},
              {"sessions", 4},
              {"groups", 2},
              {"groups_running", 1}}
      .dump();
}

Ran status_of(const std::string& state, const std::vector<std::string>& reasons, bool as_json = false) {
  const Folder folder;
  const std::string socket = folder / "epd.sock";
  const FakeDaemon daemon(socket, {.snapshots = {{"status", status_json(state, reasons)}}});
  std::vector<std::string> words{"status", "--socket", socket};
  if (as_json) words.emplace_back("--json");
  return run_epctl(words);
}

TEST(Status, ReadyIsZeroAndSaysWhatRuns) {
  const Ran ran = status_of("READY", {});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::StartsWith("READY\n"));
  EXPECT_THAT(ran.out, HasSubstr("up 1 min 15 s"));
  EXPECT_THAT(ran.out, HasSubstr("tcp (FI_EP_MSG)"));
  EXPECT_THAT(ran.out, HasSubstr("groups    2, 1 of them running"));
}

TEST(Status, DegradedIsOneAndSaysWhy) {
  const Ran ran = status_of("DEGRADED", {"group 3f2a91c0: the daemon at tcp://10.0.0.2:4000 is not reachable"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, testing::StartsWith("DEGRADED\n  group 3f2a91c0: the daemon at"));
}

TEST(Status, FailedIsTwoAndSaysWhy) {
  const Ran ran = status_of("FAILED", {"the daemon is stopping"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.out, testing::StartsWith("FAILED\n  the daemon is stopping\n"));
}

TEST(Status, JsonHasTheDaemonsKeys) {
  const Ran ran = status_of("DEGRADED", {"slow"}, true);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(json::parse(ran.out), json::parse(status_json("DEGRADED", {"slow"})));
}

TEST(Status, NoDaemonIsFailedWithTheReason) {
  const Folder folder;
  const Ran ran = run_epctl({"status", "--socket", folder / "none.sock"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.out, testing::StartsWith("FAILED\n"));
  EXPECT_THAT(ran.out, HasSubstr("no daemon at " + folder.path() + "/none.sock"));
  EXPECT_THAT(ran.out, HasSubstr("No such file"));

  const Ran as_json = run_epctl({"status", "--json", "--socket", folder / "none.sock"});
  EXPECT_EQ(as_json.exit_code, 2);
  const auto parsed = json::parse(as_json.out);
  EXPECT_EQ(parsed["state"], "FAILED");
  EXPECT_EQ(parsed["code"], "unavailable");
  EXPECT_EQ(parsed["reasons"].size(), 1U);
}

TEST(Status, SilentDaemonIsFailedByTheDeadline) {
  const Folder folder;
  const ipc::UniqueFd listener = silent_listener(folder / "epd.sock");
  const auto begin = std::chrono::steady_clock::now();
  const Ran ran = run_epctl({"status", "--timeout", "0.2", "--socket", folder / "epd.sock"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.out, HasSubstr("did not answer within 0.2 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

// A healthy daemon, and a user who is not its administrator.
TEST(Status, RefusedByCredentialsIsNoFailure) {
  const Folder folder;
  const std::string socket = folder / "epd.sock";
  const FakeDaemon daemon(socket, {.admin_error = {Code::permission, "uid 7 may not administer this daemon"}});
  const Ran ran = run_epctl({"status", "--socket", socket});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, testing::StartsWith("REFUSED\n  uid 7 may not administer"));
}

TEST(Status, InterruptEndsItAtOnce) {
  const Folder folder;
  const ipc::UniqueFd listener = silent_listener(folder / "epd.sock");
  Program program({EPCTL_PROGRAM, "status", "--timeout", "600", "--socket", folder / "epd.sock"});
  ASSERT_TRUE(program.started());
  // It has connected: from here on it waits for the answer.
  const ipc::UniqueFd connection(::accept(listener.get(), nullptr, nullptr));
  ASSERT_TRUE(connection);
  program.signal(SIGINT);
  program.drain();
  const int status = program.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
}

}  // namespace
}  // namespace railhead::epctl
