// The program itself: what it prints, its exit codes, and what it leaves behind when it is stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/support/processes.hpp"
#include "tools/ep-bench/launch/child.hpp"
#include "tools/ep-bench/launch/temp_dir.hpp"

namespace railhead::bench {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// Everything that ep-bench makes lies below a folder of the test.
class EpBenchTest : public testing::Test {
 protected:
  EpBenchTest() : folder_(*TempDir::make()) { setenv("TMPDIR", path().c_str(), 1); }
  ~EpBenchTest() override { unsetenv("TMPDIR"); }

  [[nodiscard]] std::string path() const { return fs::path(folder_.file("x")).parent_path(); }
  static ipc::Deadline soon() { return ipc::Deadline::after(std::chrono::seconds(60)); }

  static std::vector<std::string> command(std::vector<std::string> words) {
    words.insert(words.begin(), EP_BENCH);
    return words;
  }
  static Result<std::string> run(std::vector<std::string> words) {
    return run_program("ep-bench", command(std::move(words)), soon());
  }

  // Processes whose command line speaks of the test's folder.
  [[nodiscard]] std::vector<pid_t> processes(const std::string& with = {}) const {
    std::vector<pid_t> out;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0) continue;
      std::ifstream file(entry.path() / "cmdline");
      std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      std::replace(text.begin(), text.end(), '\0', ' ');
      if (text.find(path()) != std::string::npos && text.find(with) != std::string::npos) out.push_back(pid);
    }
    return out;
  }

  static bool wait_for(const std::function<bool()>& condition) {
    return test::eventually(condition, std::chrono::seconds(60));
  }

  // A run that does not end by itself, at the time when its two ranks exchange tokens.
  Child start_endless(const std::string& output) {
    auto child = Child::spawn(
        "ep-bench", command({"run", "--ranks", "2", "--tokens", "4", "--hidden", "16", "--rounds", "10000000"}),
        {.network = -1, .cores = {}, .pass = {}, .output = output, .stdout_fd = -1});
    EXPECT_TRUE(child);
    EXPECT_TRUE(wait_for([&] { return processes("--rank 1").size() == 1; }));
    return std::move(*child);
  }

  [[nodiscard]] bool left_nothing(const std::string& output) const {
    return processes().empty() &&
           std::distance(fs::directory_iterator(path()), fs::directory_iterator()) == (fs::exists(output) ? 1 : 0);
  }

  TempDir folder_;
};

TEST_F(EpBenchTest, VerifiedRunAsJson) {
  const auto text = run({"run", "--ranks", "3", "--tokens", "5,0,9", "--hidden", "24", "--rounds", "4", "--topk", "2",
                         "--experts", "7", "--layout", "expert", "--align", "4", "--verify", "--json"});
  ASSERT_TRUE(text) << text.error().message();
  const auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json["verified"], true);
  EXPECT_EQ(json["total_ms"]["samples"].size(), 4);
  EXPECT_NEAR(json["rows_per_rank"].get<double>(), 14 * 2 / 3.0, 0.01);
}

TEST_F(EpBenchTest, TwoNodesUnderFaults) {
  const auto text = run({"run", "--nodes", "2", "--ranks", "1,2", "--order", "interleave", "--tokens", "40", "--hidden",
                         "512", "--rounds", "3", "--fault", "seed=1,reorder=8,delay=16", "--async", "--verify"});
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_THAT(*text, AllOf(HasSubstr("3 ranks on 2 nodes"), HasSubstr("every round verified")));
}

TEST_F(EpBenchTest, WrongUseIsCodeTwo) {
  EXPECT_EQ(*Child::spawn("ep-bench", command({"run", "--layout", "diagonal"}))->wait(soon()), 2);
  EXPECT_EQ(*Child::spawn("ep-bench", command({"run", "--tokens", "1,2"}))->wait(soon()), 2);
  EXPECT_EQ(*Child::spawn("ep-bench", command({"compare", "--only", "node_rank_t64"}))->wait(soon()), 2);
}

TEST_F(EpBenchTest, AnInterruptLeavesNothing) {
  const std::string output = folder_.file("output");
  Child child = start_endless(output);
  child.send_signal(SIGINT);
  EXPECT_EQ(*child.wait(soon()), 1);
  EXPECT_TRUE(left_nothing(output));
}

TEST_F(EpBenchTest, AKilledLauncherTakesItsProcessesAlong) {
  Child child = start_endless(folder_.file("output"));
  child.send_signal(SIGKILL);
  EXPECT_EQ(*child.wait(soon()), 128 + SIGKILL);
  EXPECT_TRUE(wait_for([&] { return processes().empty(); }));
}

TEST_F(EpBenchTest, ALostRankIsNamed) {
  const std::string output = folder_.file("output");
  Child child = start_endless(output);
  for (const pid_t pid : processes("--rank 1")) kill(pid, SIGKILL);
  EXPECT_EQ(*child.wait(soon()), 1);
  std::ifstream file(output);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, HasSubstr("rank 1"));
  EXPECT_TRUE(left_nothing(output));
}

TEST_F(EpBenchTest, JoinsARunningDaemon) {
  const std::string socket = folder_.file("epd.sock");
  auto daemon = Child::spawn("epd", {EPD, "--config", "none", "--socket", socket, "--drain_s", "1"},
                             {.network = -1, .cores = {}, .pass = {}, .output = folder_.file("log"), .stdout_fd = -1});
  ASSERT_TRUE(daemon);
  ASSERT_TRUE(wait_for([&] { return fs::exists(socket); }));
  std::vector<Child> ranks;
  for (const char* rank : {"0", "1"}) {
    auto child = Child::spawn("rank",
                              command({"run", "--ranks", "2", "--tokens", "6", "--hidden", "16", "--rounds", "3",
                                       "--verify", "--join", socket, "--rank", rank, "--id-file", folder_.file("id")}),
                              {.network = -1, .cores = {}, .pass = {}, .output = folder_.file(rank), .stdout_fd = -1});
    ASSERT_TRUE(child);
    ranks.push_back(std::move(*child));
  }
  for (Child& rank : ranks) EXPECT_EQ(*rank.wait(soon()), 0);
  daemon->stop(soon());
}

TEST_F(EpBenchTest, ComparesWithoutMpi) {
  const auto text =
      run({"compare", "--pairs", "5", "--no-fail", "--json", "--only", "ring_mops,pingpong,death_ms,regroup_ms,wire"});
  ASSERT_TRUE(text) << text.error().message();
  const auto json = nlohmann::json::parse(*text);
  for (const char* key : {"ring_mops", "pingpong", "death_ms", "regroup_ms", "wire"}) {
    EXPECT_TRUE(json["ratios"].contains(key) || json["absent"].contains(key)) << key << ": " << json["failed"].dump();
  }
}

}  // namespace
}  // namespace railhead::bench
