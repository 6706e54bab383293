// The daemon that the library starts by itself: shared by the ranks of a job, gone after the last, whatever happens to
// its starter.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>
#include <set>

#include "tests/fault/world.hpp"
#include "tools/epctl/admin_call.hpp"

namespace railhead::test {
namespace {

using testing::HasSubstr;

class PrivateDaemon : public testing::Test {
 protected:
  // Its logs tell more when the daemons have ended; and none of them outlives its test.
  void TearDown() override {
    std::vector<std::string> sockets;
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_ / ("railhead-" + std::to_string(::geteuid())), none)) {
      if (entry.path().extension() == ".sock") sockets.push_back(entry.path());
    }
    for (const std::string& socket : sockets) {
      const pid_t pid = status_at(socket).value("pid", -1);
      if (pid <= 0) continue;
      ::kill(pid, SIGTERM);
      EXPECT_TRUE(ends(pid)) << socket;
    }
  }
  std::unique_ptr<Rank> start(const std::string& job = "job", const std::string& epd = EPD_PROGRAM) {
    return std::make_unique<Rank>(
        RANK_PROGRAM, "", folder_ / "ranks.log",
        std::vector<std::string>{"IPATH_NO_BACKTRACE=1", "RAILHEAD_DAEMON=private", "RAILHEAD_JOB=" + job,
                                 "XDG_RUNTIME_DIR=" + (folder_ / ""), "RAILHEAD_EPD=" + epd});
  }
  [[nodiscard]] std::string stem(const std::string& job = "job") const {
    struct stat net {};
    (void)::stat("/proc/self/ns/net", &net);
    return folder_ / ("railhead-" + std::to_string(::geteuid()) + "/" + job + "-" + std::to_string(net.st_ino));
  }
  Json status(const std::string& job = "job") { return status_at(stem(job) + ".sock"); }
  static Json status_at(const std::string& socket) {
    epctl::Options options;
    options.socket = socket;
    options.timeout_s = 10;
    auto json = epctl::snapshot(options, "status");
    return json ? *json : Json{{"error", json.error().to_string()}};
  }
  // It leaves 5 s after its last session.
  static bool ends(pid_t pid) {
    const ipc::UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!fd) return true;
    pollfd ended{fd.get(), POLLIN, 0};
    return ::poll(&ended, 1, 12'000) == 1;
  }
  void expect_works(const std::vector<std::unique_ptr<Rank>>& ranks) {
    const Reply id = ranks[0]->ask("id");
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks[r]->send("join id=" + id.text + " ranks=" + std::to_string(ranks.size()) + " rank=" + std::to_string(r));
      ranks[r]->send("round n=2");
    }
    for (const auto& rank : ranks) {
      const Reply joined = rank->reply();
      EXPECT_EQ(joined.status, "ok") << joined.text;
      const Reply done = rank->reply();
      EXPECT_EQ(done.status, "ok") << done.text;
    }
  }
  std::string log(const std::string& job = "job") {
    std::ifstream in(stem(job) + ".log");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  Folder folder_;
};

TEST_F(PrivateDaemon, FourThatStartTogetherShareOneAndItLeavesAfterTheLast) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < 4; ++r) ranks.push_back(start());
  for (const auto& rank : ranks) rank->send("open");
  for (const auto& rank : ranks) {
    const Reply opened = rank->reply();
    ASSERT_EQ(opened.status, "ok") << opened.text << log();
  }
  EXPECT_EQ(status().value("sessions", 0), 4) << status().dump();
  expect_works(ranks);
  const pid_t pid = status().value("pid", -1);
  ASSERT_GT(pid, 0);
  ranks[0]->send("exit code=0");
  ranks[1]->process().signal(SIGKILL);
  ranks.clear();
  EXPECT_TRUE(ends(pid)) << status().dump();
}

// At once: nothing will ever listen.
TEST_F(PrivateDaemon, WithoutAProgramToRunIsRefusedByName) {
  for (const std::string& epd : {folder_ / "none", folder_ / "", std::string("no-such-epd"), std::string()}) {
    const Reply refused = start("job", epd)->ask("open");
    EXPECT_EQ(refused.status, "unavailable") << refused.text;
    EXPECT_THAT(refused.text, testing::HasSubstr("RAILHEAD_EPD is '" + epd + "'"));
    EXPECT_EQ(log(), "") << "it was started";
  }
}

TEST_F(PrivateDaemon, OutlivesItsStarterKilledAtOnce) {
  std::mt19937 random(11);
  for (int i = 0; i < (soak() ? 50 : 6); ++i) {
    const std::string job = "job" + std::to_string(i);
    auto starter = start(job);
    starter->send("open");
    ::poll(nullptr, 0, static_cast<int>(random() % 60));
    starter->process().signal(SIGKILL);
    std::vector<std::unique_ptr<Rank>> ranks;
    ranks.push_back(start(job));
    const Reply opened = ranks[0]->ask("open");
    EXPECT_EQ(opened.status, "ok") << opened.text << log(job);
    expect_works(ranks);
  }
}

TEST_F(PrivateDaemon, StaleSocketAndLockAreNoObstacle) {
  ASSERT_EQ(::mkdir((folder_ / ("railhead-" + std::to_string(::geteuid()))).c_str(), 0700), 0);
  std::ofstream(stem() + ".lock") << "left behind";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = stem() + ".sock";
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  {
    const ipc::UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  std::vector<std::unique_ptr<Rank>> ranks;
  ranks.push_back(start());
  const Reply opened = ranks[0]->ask("open");
  ASSERT_EQ(opened.status, "ok") << opened.text << log();
  expect_works(ranks);
}

TEST_F(PrivateDaemon, KilledItIsReplacedForTheNextSession) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < 2; ++r) ranks.push_back(start());
  for (const auto& rank : ranks) ASSERT_EQ(rank->ask("open").status, "ok") << log();
  const pid_t first = status().value("pid", -1);
  ASSERT_GT(first, 0);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  ASSERT_TRUE(ends(first));
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->ask("id").status, "daemon_lost");
    ASSERT_EQ(rank->ask("close_session").status, "ok");
    const Reply opened = rank->ask("open");
    ASSERT_EQ(opened.status, "ok") << opened.text;
  }
  EXPECT_NE(status().value("pid", -1), first);
  expect_works(ranks);
}

TEST_F(PrivateDaemon, ToldToStopItMakesRoomForTheNextAndIsSeenUntilItEnds) {
  const auto early = start();
  ASSERT_EQ(early->ask("open").status, "ok") << log();
  const pid_t first = status().value("pid", -1);
  ASSERT_GT(first, 0);
  ASSERT_EQ(::kill(first, SIGTERM), 0);
  ASSERT_TRUE(eventually([&] { return log().find("stopping; 1 session") != std::string::npos; })) << log();

  const std::string aside = stem() + ".draining-" + std::to_string(first) + ".sock";
  const Json draining = status_at(aside);
  EXPECT_EQ(draining.value("state", ""), "DEGRADED") << draining.dump();
  EXPECT_THAT(draining.value("socket", ""), testing::EndsWith(".draining-" + std::to_string(first) + ".sock"));
  const auto late = start();
  const Reply opened = late->ask("open");
  EXPECT_EQ(opened.status, "ok") << opened.text;
  EXPECT_NE(status().value("pid", first), first);

  EXPECT_EQ(early->ask("close_session").status, "ok");
  EXPECT_TRUE(ends(first));
  EXPECT_FALSE(std::filesystem::exists(aside));
}

TEST_F(PrivateDaemon, TwoJobsHaveTwo) {
  const auto a = start("a");
  const auto b = start("b");
  ASSERT_EQ(a->ask("open").status, "ok");
  ASSERT_EQ(b->ask("open").status, "ok");
  EXPECT_NE(status("a").value("pid", -1), status("b").value("pid", -1));
  EXPECT_EQ(status("a").value("sessions", 0), 1);
  EXPECT_EQ(status("b").value("sessions", 0), 1);
}

TEST_F(PrivateDaemon, AFolderOfSomebodyElseIsRefused) {
  ASSERT_EQ(::mkdir((folder_ / ("railhead-" + std::to_string(::geteuid()))).c_str(), 0777), 0);
  ::chmod((folder_ / ("railhead-" + std::to_string(::geteuid()))).c_str(), 0777);
  const Reply opened = start()->ask("open");
  EXPECT_EQ(opened.status, "permission");
  EXPECT_THAT(opened.text, HasSubstr("0700"));
}

}  // namespace
}  // namespace railhead::test
