// The program itself: what it prints, its exit codes, and what it leaves behind when it is stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/support/processes.hpp"
#include "tests/unit/bench/temp_file.hpp"
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
  // A limit for what hangs: a comparison, with a core for each of its processes, takes a minute on a busy machine.
  static ipc::Deadline soon() { return ipc::Deadline::after(std::chrono::minutes(2)); }

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

  // The JSON of a short run that verifies every value.
  static nlohmann::json verified(std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "--hidden", "64", "--rounds", "4", "--verify", "--json"});
    const auto text = run(std::move(words));
    if (!text) {
      ADD_FAILURE() << text.error().message();
      return nlohmann::json::object();
    }
    auto json = nlohmann::json::parse(*text);
    EXPECT_EQ(json["verified"], true);
    EXPECT_GT(json["rows_per_rank"].get<double>(), 0);
    return json;
  }

  static std::string contents(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  TempDir folder_;
};

// Why nodes cannot be namespaces here; empty where they can.
std::string no_namespaces() {
  if (geteuid() != 0) return "network namespaces need root";
  if (std::system("ip -V >/dev/null 2>&1") != 0) return "ip (iproute2) is not installed";
  if (std::system("unshare --net true 2>/dev/null") != 0) return "this root may not make network namespaces";
  return {};
}

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

TEST_F(EpBenchTest, NodesOverLoopback) {
  EXPECT_EQ(verified({"--nodes", "2", "--ranks", "2", "--tokens", "30", "--net", "loopback"})["net"], "loopback");
}

TEST_F(EpBenchTest, NodesAsNamespaces) {
  if (const std::string why = no_namespaces(); !why.empty()) GTEST_SKIP() << why;
  const std::vector<std::string> words = {"--ranks", "1", "--tokens", "30", "--net", "netns"};
  for (const auto& [nodes, net] :
       {std::pair("2", "namespaces joined by veth"), std::pair("3", "namespaces joined by a bridge")}) {
    auto all = words;
    all.insert(all.end(), {"--nodes", nodes});
    EXPECT_EQ(verified(all)["net"], net);
  }
}

TEST_F(EpBenchTest, RoutingOfATextAndOfAPackedTrace) {
  const std::string text = folder_.file("text");
  std::ofstream(text) << "of the many words of a text the same few come again and again\n";
  EXPECT_EQ(verified({"--ranks", "3", "--tokens", "20", "--routing", "text:" + text})["workload"]["routing"],
            "text:" + text);

  const TempFile trace("");
  std::string lines = "# routed_experts=6\n# top_k=2\nreq,token,layer,e0,e1,w0,w1\n";
  for (int token = 0; token < 50; ++token) {
    const std::string number = std::to_string(token);
    lines += "a," + number + ",0," + std::to_string(token % 6) + ",-1,1,0\n";
    lines += "a," + number + ",1," + std::to_string(token % 5) + ",5,0.75,0.25\n";
  }
  trace.replace_with_gzip(lines);
  const auto json = verified(
      {"--nodes", "2", "--ranks", "2", "--tokens", "20", "--layout", "expert", "--routing", "trace:" + trace.path()});
  EXPECT_EQ(json["workload"]["experts"], 6);
  EXPECT_EQ(json["workload"]["topk"], 2);
}

TEST_F(EpBenchTest, AnErrorSaysItsStatusOnce) {
  const std::string output = folder_.file("output");
  auto child =
      Child::spawn("ep-bench", command({"run", "--join", folder_.file("none"), "--rank", "0", "--id-file", "unused"}),
                   {.network = -1, .cores = {}, .pass = {}, .output = output, .stdout_fd = -1});
  ASSERT_TRUE(child);
  EXPECT_EQ(*child->wait(soon()), 1);
  EXPECT_THAT(contents(output), testing::StartsWith("ep-bench: unavailable: no daemon listens on"));
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
  EXPECT_THAT(contents(output), HasSubstr("rank 1"));
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

// The path to MPI and back: its processes in namespaces, their report, the figure. What the figure is is nobody's
// business here.
TEST_F(EpBenchTest, ComparesWithMpi) {
  const auto text = run({"compare", "--pairs", "5", "--no-fail", "--json", "--only", "two_nodes_t512"});
  ASSERT_TRUE(text) << text.error().message();
  const auto json = nlohmann::json::parse(*text);
  ASSERT_TRUE(json["failed"].empty()) << json["failed"].dump();
  if (json["absent"].contains("two_nodes_t512")) GTEST_SKIP() << json["absent"]["two_nodes_t512"].get<std::string>();
  EXPECT_GT(json["ratios"]["two_nodes_t512"].get<double>(), 0);
  EXPECT_EQ(json["raw"]["two_nodes_t512"]["pairs"], 5);
  EXPECT_GT(json["raw"]["two_nodes_t512"]["gb_s_per_rank"]["peer"].get<double>(), 0);
}

}  // namespace
}  // namespace railhead::bench
