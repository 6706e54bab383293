// A rank killed at any moment: named to every survivor within a second; the daemons free what it had; others go on.
#include <poll.h>

#include <algorithm>
#include <random>

#include "tests/fault/world.hpp"
#include "tests/support/faults.hpp"

namespace railhead::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr double kLimitMs = 1000;

// Rings of one slot and chunks of one record, in three channels: half of the cases, the others have the defaults.
constexpr const char* kNarrow = "channels=3 slots=1 chunk=1";

class Kill : public testing::TestWithParam<std::uint32_t> {
 protected:
  explicit Kill(const std::vector<std::string>& flags = {})
      : world_(GetParam(), flags), base_(world_.settled_holdings()) {}

  // Ranks over the hosts in turn.
  void populate(std::size_t ranks, const std::string& parameters = {}) {
    std::vector<std::uint32_t> host_of_rank;
    for (std::size_t r = 0; r < ranks; ++r) host_of_rank.push_back(static_cast<std::uint32_t>(r % GetParam()));
    world_.populate(host_of_rank, parameters);
  }
  void kill_now(std::size_t victim) {
    victim_pid_ = world_.rank(victim).pid();
    killed_ns_ = now_ns();
    world_.rank(victim).process().signal(SIGKILL);
  }
  void expect_named(std::size_t victim, const Reply& reply) {
    EXPECT_EQ(reply.status, "rank_lost") << reply.text;
    EXPECT_THAT(reply.text, HasSubstr("rank " + std::to_string(victim)));
    // Also by a survivor that runs into the absence before it is told.
    EXPECT_THAT(reply.text, HasSubstr("pid " + std::to_string(victim_pid_)));
    const double ms = reply.at_ns < killed_ns_ ? 0 : static_cast<double>(reply.at_ns - killed_ns_) / 1e6;
    EXPECT_LT(ms, kLimitMs) << reply.text;
    times_.push_back(ms);
  }
  void expect_everything_freed() {
    world_.forget_ranks();
    for (std::uint32_t h = 0; h < GetParam(); ++h) world_.expect_freed(h, base_[h]);
  }
  void kill_at_random_instants(int kills);
  static std::vector<std::size_t> all_but(std::vector<std::size_t> list, std::size_t one) {
    std::erase(list, one);
    return list;
  }

  World world_;
  std::vector<World::Holdings> base_;
  pid_t victim_pid_ = 0;
  std::uint64_t killed_ns_ = 0;
  std::vector<double> times_;
};

TEST_P(Kill, BetweenOperations) {
  populate(4);
  world_.expect_good(world_.everybody(), "round n=3");
  kill_now(1);
  const auto survivors = all_but(world_.everybody(), 1);
  world_.send(survivors, "round endless");
  for (const std::size_t r : survivors) expect_named(1, world_.rank(r).reply());
  expect_everything_freed();
}

TEST_P(Kill, WhileOthersWaitForItsHeader) {
  populate(4, kNarrow);
  world_.expect_good(world_.everybody(), "round");
  const auto survivors = all_but(world_.everybody(), 2);
  world_.send(survivors, "round");
  world_.why(0, [](const Json& w) { return w.value("phase", "") == "headers" && w.value("waits_for_rank", -1) == 2; });
  kill_now(2);
  for (const std::size_t r : survivors) expect_named(2, world_.rank(r).reply());
  expect_everything_freed();
}

TEST_P(Kill, InTheMiddleOfAnOperation) {
  populate(4, kNarrow);
  world_.expect_good(world_.everybody(), "round");
  const auto survivors = all_but(world_.everybody(), 3);
  world_.send(survivors, "round tokens=64");
  // Rank 3 has told its counts and gives no place for its rows: the others can never finish.
  ASSERT_EQ(world_.rank(3).ask("plan tokens=64").status, "ok");
  kill_now(3);
  for (const std::size_t r : survivors) expect_named(3, world_.rank(r).reply());
  for (const std::size_t r : survivors) EXPECT_EQ(world_.rank(r).ask("status").status, "rank_lost");
  expect_everything_freed();
}

TEST_P(Kill, WithALivingForkedChildThatHoldsEverything) {
  populate(3);
  world_.expect_good(world_.everybody(), "round");
  const Reply forked = world_.rank(1).ask("fork");
  ASSERT_EQ(forked.status, "ok");
  EXPECT_THAT(forked.text, testing::HasSubstr("library says forked"));
  world_.expect_good(world_.everybody(), "round");  // the parent goes on
  const auto survivors = all_but(world_.everybody(), 1);
  world_.send(survivors, "round endless");
  kill_now(1);
  for (const std::size_t r : survivors) expect_named(1, world_.rank(r).reply());
  // The child still lives: what its parent had here must go all the same.
  for (const std::size_t r : survivors) world_.forget_rank(r);
  for (std::uint32_t h = 0; h < GetParam(); ++h) world_.expect_freed(h, base_[h]);
}

TEST_P(Kill, AnotherGroupGoesOnAndSurvivorsMakeANewOne) {
  populate(3, kNarrow);  // processes 0, 1, 2
  for (std::size_t i = 0; i < 2; ++i) world_.add_rank(static_cast<std::uint32_t>(i) % GetParam());
  const std::vector<std::size_t> others = {3, 4};
  world_.make_group(others);
  world_.send(others, "round n=600 tokens=32");
  world_.send({0, 1, 2}, "round endless tokens=32");
  ::poll(nullptr, 0, 20);  // somewhere inside
  kill_now(1);
  for (const std::size_t r : {std::size_t{0}, std::size_t{2}}) expect_named(1, world_.rank(r).reply());
  world_.make_group({0, 2});
  world_.expect_good({0, 2}, "round n=5");
  for (const Reply& reply : world_.replies(others)) EXPECT_EQ(reply.status, "ok") << reply.text;
  expect_everything_freed();
}

void Kill::kill_at_random_instants(int kills) {
  const unsigned seed = 20250101;
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (std::size_t r = 0; r < 4; ++r) world_.add_rank(static_cast<std::uint32_t>(r) % GetParam());
  for (int i = 0; i < kills && !HasFailure(); ++i) {
    world_.make_group(world_.everybody(), i % 2 == 0 ? "" : kNarrow);
    world_.send(world_.everybody(), "round endless tokens=256");
    ::poll(nullptr, 0, static_cast<int>(random() % 25));
    const std::size_t victim = random() % 4;
    kill_now(victim);
    for (const std::size_t r : all_but(world_.everybody(), victim)) expect_named(victim, world_.rank(r).reply());
    // The place of the victim is taken by a new process; the survivors stay.
    world_.replace_rank(victim, static_cast<std::uint32_t>(victim) % GetParam());
    for (std::size_t r = 0; r < 4; ++r) world_.rank(r).send("close_all");
    for (std::size_t r = 0; r < 4; ++r) EXPECT_EQ(world_.rank(r).reply().status, "ok");
  }
  print_times("kill to error, " + std::to_string(GetParam()) + " host(s), 4 ranks", times_);
  expect_everything_freed();
}

TEST_P(Kill, AtRandomInstants) {
  kill_at_random_instants(soak() ? 300 : GetParam() == 1 ? 20 : 10);
}

INSTANTIATE_TEST_SUITE_P(Hosts, Kill, testing::Values(1U, 2U), [](const auto& i) { return std::to_string(i.param); });

// The same with writes that come late, twice and out of order while the group ends.
class KillUnderFaults : public Kill {
 protected:
  KillUnderFaults() : Kill({"--fabric.fault", all_faults(52)}) {}
};

TEST_P(KillUnderFaults, AtRandomInstants) {
  kill_at_random_instants(soak() ? 100 : 6);
}

INSTANTIATE_TEST_SUITE_P(Hosts, KillUnderFaults, testing::Values(2U),
                         [](const auto& i) { return std::to_string(i.param); });

}  // namespace
}  // namespace railhead::test
