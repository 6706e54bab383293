// Ranks and daemons in PID namespaces of their own, as containers have them: the pids that they know of each other
// differ or do not exist.
#include <unistd.h>

#include <fstream>

#include "tests/fault/world.hpp"

namespace railhead::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

using Words = std::vector<std::string>;

Words operator+(Words first, const Words& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

const Words kOwnPids = {"/usr/bin/unshare", "--kill-child", "--fork", "--pid"};
const Words kOwnPidsAndProc = kOwnPids + Words{"--mount-proc"};
// The rank shares the socket with the daemon and nothing else; its user is root only there.
const Words kContainer = {"/usr/bin/unshare", "--kill-child", "--fork", "--user", "--map-root-user", "--pid",
                          "--mount-proc",     "--ipc",        "--uts",  "--net",  "--cgroup"};
// A first process that is not the rank: what the rank forks outlives it.
const Words kInit = {"/bin/sh", "-c", "\"$0\" \"$@\"; true"};

struct Where {
  std::string name;
  Words daemon;           // of host 0
  Words rank;             // of rank 1, there
  bool together = false;  // rank 1 in the namespace of its daemon
};

// What runs below a wrapper: the last in the line of first children.
pid_t innermost(pid_t pid) {
  for (pid_t child = 0;; pid = child) {
    const std::string name = std::to_string(pid);
    std::ifstream children("/proc/" + name + "/task/" + name + "/children");
    if (!(children >> child)) return pid;
  }
}

// The number in the innermost namespace of a process.
pid_t own_number(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("NSpid:")) return std::stoi(line.substr(line.find_last_of('\t')));
  }
  return 0;
}

class Namespaces : public testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    for (const Words& inside : {GetParam().daemon, GetParam().rank}) {
      if (inside.empty()) continue;
      ChildProcess probe(inside + Words{"/bin/true"}, {}, world_.path("unshare.log"));
      if (probe.wait(Milliseconds(20'000)) != 0) GTEST_SKIP() << "this user may not make namespaces: run it as root";
    }
    world_.start_host(0, {}, GetParam().daemon);
    world_.start_host(1);
    world_.add_rank(0);
    world_.add_rank(0, "open", GetParam().together ? beside_daemon() : GetParam().rank);
    world_.add_rank(1);
    world_.make_group(world_.everybody());
    inner_ = innermost(world_.rank(1).pid());
  }
  Words beside_daemon() {
    const pid_t daemon = innermost(world_.host(0).process().pid());
    return {"/usr/bin/nsenter", "--target", std::to_string(daemon), "--pid"};
  }
  // As host 0's daemon can name rank 1's process.
  [[nodiscard]] std::string name_of_process() const {
    if (GetParam().daemon.empty()) return "(pid " + std::to_string(inner_) + ")";
    if (GetParam().together) return "(pid " + std::to_string(own_number(inner_)) + ")";
    return "(pid " + std::to_string(own_number(inner_)) + " of another PID namespace)";
  }
  void expect_death_named() {
    const std::string process = name_of_process();
    world_.send({0, 2}, "round endless");
    const std::uint64_t killed_ns = now_ns();
    ASSERT_EQ(::kill(inner_, SIGKILL), 0);
    for (const Reply& reply : world_.replies({0, 2})) {
      EXPECT_EQ(reply.status, "rank_lost") << reply.text;
      EXPECT_THAT(reply.text, HasSubstr("rank 1 "));
      // Also by a survivor that runs into the absence before it is told.
      EXPECT_THAT(reply.text, HasSubstr(process));
      EXPECT_LT(reply.at_ns, killed_ns + 1'000'000'000U);
    }
    const Json ended =
        world_.why(0, [](const Json& w) { return w.value("text", "").find("ended: ") != std::string::npos; });
    EXPECT_THAT(ended.value("text", ""), AllOf(HasSubstr("rank 1 "), HasSubstr(process)));
    EXPECT_TRUE(eventually([&] { return world_.host(0).snapshot("sessions")["sessions"].size() == 1; }))
        << "the fence did not fall: " << world_.host(0).snapshot("why").dump();
    world_.make_group({0, 2});
    world_.expect_good({0, 2}, "round n=3");
  }

  World world_{0};
  pid_t inner_ = 0;  // rank 1, as it is known here
};

TEST_P(Namespaces, ARankWorksAndItsDeathIsNamed) {
  world_.expect_good(world_.everybody(), "round n=3");
  expect_death_named();
}

TEST_P(Namespaces, AForkedChildHidesNoDeath) {
  world_.expect_good(world_.everybody(), "round n=3");
  const Reply forked = world_.rank(1).ask("fork");
  EXPECT_THAT(forked.text, HasSubstr("library says forked"));
  world_.expect_good(world_.everybody(), "round n=3");
  expect_death_named();
}

INSTANTIATE_TEST_SUITE_P(Where, Namespaces,
                         testing::Values(Where{"RankInside", {}, kOwnPids + kInit},
                                         Where{"RankFirstInside", {}, kOwnPids},
                                         Where{"RankInContainer", {}, kContainer + kInit},
                                         Where{"DaemonInside", kOwnPidsAndProc, {}},
                                         Where{"DaemonInsideWithTheProcOfOutside", kOwnPids, {}},
                                         Where{"BothInsideOneWithTheProcOfOutside", kOwnPids, {}, true},
                                         Where{"BothInside", kOwnPidsAndProc, kContainer + kInit}),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace railhead::test
