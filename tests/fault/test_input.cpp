// Bad input that only shows between processes: differing parameters, differing calls, refusals, strangers.
#include <unistd.h>

#include "tests/fault/world.hpp"

namespace railhead::test {
namespace {

using testing::HasSubstr;

class Input : public testing::TestWithParam<std::uint32_t> {
 protected:
  explicit Input(const std::vector<std::string>& flags = {}) : world_(GetParam(), flags) {}
  void populate(std::size_t ranks, const std::string& parameters = {}) {
    std::vector<std::uint32_t> host_of_rank;
    for (std::size_t r = 0; r < ranks; ++r) host_of_rank.push_back(static_cast<std::uint32_t>(r % GetParam()));
    world_.populate(host_of_rank, parameters);
  }
  World world_;
};

TEST_P(Input, ADifferingParameterIsNamedWithRanksAndValuesAndNothingStays) {
  (void)world_.settled_holdings();
  for (std::size_t r = 0; r < 3; ++r) world_.add_rank(static_cast<std::uint32_t>(r) % GetParam());
  std::vector<World::Holdings> base;
  for (std::uint32_t h = 0; h < GetParam(); ++h) base.push_back(world_.holdings(h));
  for (int again = 0; again < 3; ++again) {
    const Reply id = world_.rank(0).ask("id");
    for (std::size_t r = 0; r < 3; ++r) {
      world_.rank(r).send("join id=" + id.text + " ranks=3 rank=" + std::to_string(r) +
                          (r == 1 ? " hidden=128" : " hidden=64"));
    }
    std::size_t told = 0;
    for (const Reply& reply : world_.replies(world_.everybody())) {
      // The last to come may find that there is no group any more.
      EXPECT_TRUE(reply.status == "mismatch" || reply.status == "invalid_usage") << reply.status << " " << reply.text;
      if (reply.status != "mismatch") continue;
      ++told;
      EXPECT_THAT(reply.text, HasSubstr("hidden differs"));
      EXPECT_THAT(reply.text, HasSubstr("128 on rank 1"));
    }
    EXPECT_GE(told, 2U);
  }
  for (std::uint32_t h = 0; h < GetParam(); ++h) world_.expect_freed(h, base[h]);
  world_.make_group(world_.everybody());
  world_.expect_good(world_.everybody(), "round");
}

TEST_P(Input, DifferentCallsUnderOneNumberAreAnErrorOnAllRanks) {
  populate(3);
  world_.expect_good(world_.everybody(), "round");
  world_.send({0, 1}, "round layout=0");
  world_.send({2}, "round layout=1");
  for (const Reply& reply : world_.replies(world_.everybody())) {
    EXPECT_EQ(reply.status, "mismatch") << reply.text;
    EXPECT_THAT(reply.text, HasSubstr("op 3"));
    EXPECT_THAT(reply.text, HasSubstr("layout"));
  }
}

TEST_P(Input, ARefusedCallShowsInWhyAndTheCorrectedOneWorks) {
  populate(3);
  world_.expect_good(world_.everybody(), "round");
  world_.send({0, 2}, "round");
  const Reply refused = world_.rank(1).ask("refused");
  EXPECT_EQ(refused.status, "invalid_argument");
  EXPECT_THAT(refused.text, HasSubstr("the call did not happen"));
  for (std::uint32_t h = 0; h < GetParam(); ++h) {  // also where the rank that refused does not live
    const Json why = world_.why(h, [](const Json& w) { return w.value("refused_op", 0) == 3; });
    EXPECT_EQ(why.value("rank", -1), 1);
    EXPECT_THAT(why.value("text", ""), HasSubstr("rank 1 refused its call of op 3 and has not made it again: "));
    EXPECT_THAT(why.value("text", ""), HasSubstr("expert"));
  }
  ASSERT_EQ(world_.rank(1).ask("round").status, "ok");
  for (const Reply& reply : world_.replies({0, 2})) EXPECT_EQ(reply.status, "ok") << reply.text;
  const Json after = world_.host(0).snapshot("why");
  for (const Json& wait : after["waits"]) EXPECT_FALSE(wait.contains("refused_op")) << wait;
}

TEST_P(Input, ARefusalStaysInWhyWhenAnOlderOperationCompletes) {
  populate(3);
  world_.expect_good(world_.everybody(), "plan");
  const Reply refused = world_.rank(1).ask("refused");
  EXPECT_THAT(refused.text, HasSubstr("the call did not happen"));
  world_.expect_good(world_.everybody(), "run");
  world_.send({0, 2}, "round");
  for (std::uint32_t h = 0; h < GetParam(); ++h) {
    const Json why = world_.why(h, [](const Json& w) { return w.value("refused_op", 0) != 0; });
    EXPECT_THAT(why.value("text", ""), HasSubstr("rank 1 refused its call of op 2"));
  }
  ASSERT_EQ(world_.rank(1).ask("round").status, "ok");
  for (const Reply& reply : world_.replies({0, 2})) EXPECT_EQ(reply.status, "ok") << reply.text;
}

TEST_P(Input, OnRefusalAbortEndsTheGroupForAll) {
  populate(3, "abort_on_refusal=1");
  world_.expect_good(world_.everybody(), "round");
  world_.send({0, 2}, "round");
  EXPECT_EQ(world_.rank(1).ask("refused").status, "invalid_argument");
  for (const Reply& reply : world_.replies({0, 2})) {
    EXPECT_EQ(reply.status, "aborted") << reply.text;
    EXPECT_THAT(reply.text, HasSubstr("aborted by rank 1"));
  }
}

TEST_P(Input, OneRankJoiningTwiceIsNamed) {
  for (std::size_t r = 0; r < 2; ++r) world_.add_rank(static_cast<std::uint32_t>(r) % GetParam());
  const Reply id = world_.rank(0).ask("id");
  for (std::size_t r = 0; r < 2; ++r) world_.rank(r).send("join id=" + id.text + " ranks=2 rank=0");
  for (const Reply& reply : world_.replies(world_.everybody())) {
    EXPECT_EQ(reply.status, "invalid_argument") << reply.text;
    EXPECT_THAT(reply.text, HasSubstr("rank 0 joined"));
  }
}

TEST_P(Input, AForgedIdIsRefused) {
  populate(1);
  EXPECT_EQ(world_.rank(0).ask("join ranks=1 rank=0 id=" + std::string(512, '0')).status, "invalid_argument");
  std::string id = world_.rank(0).ask("id").text;
  id[20] = id[20] == '0' ? '1' : '0';
  const Reply reply = world_.rank(0).ask("join ranks=1 rank=0 id=" + id);
  EXPECT_EQ(reply.status, "invalid_argument") << reply.text;
}

INSTANTIATE_TEST_SUITE_P(Hosts, Input, testing::Values(1U, 2U), [](const auto& i) { return std::to_string(i.param); });

TEST(Uid, OnlyThoseAllowedMayOpenSessions) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  World world(1, {"--allowed_uids", "65533", "--socket_mode", "0666"});
  world.open_folder();
  for (const char* const uid : {"65533", "65534"}) {
    const auto stranger = world.new_process(0);
    ASSERT_EQ(stranger->ask(std::string("setuid uid=") + uid).status, "ok");
    const Reply reply = stranger->ask("open");
    if (std::string(uid) == "65533") {
      EXPECT_EQ(reply.status, "ok") << reply.text;
      continue;
    }
    EXPECT_EQ(reply.status, "permission");
    EXPECT_THAT(reply.text, HasSubstr("uid 65534 is not in allowed_uids"));
  }
}

// As installed: the socket is its group's, and who is not in it is told so where it asks for this daemon.
TEST(Uid, WhoMayNotConnectIsTold) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  World world(1);
  world.open_folder();
  const auto stranger = world.new_process(0);
  ASSERT_EQ(stranger->ask("setuid uid=65534").status, "ok");
  const Reply reply = stranger->ask("open");
  EXPECT_EQ(reply.status, "permission");
  EXPECT_THAT(reply.text, HasSubstr("uid 65534 may not connect to the daemon at " + world.host(0).socket()));
  EXPECT_THAT(reply.text, HasSubstr("usermod -aG"));
}

}  // namespace
}  // namespace railhead::test
