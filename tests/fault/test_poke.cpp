// A rank that overwrites words it shares with its peers: their calls end with an error in time, and nobody crashes.
#include "tests/fault/world.hpp"

namespace railhead::test {
namespace {

using testing::HasSubstr;

class Poke : public testing::Test {
 protected:
  // Rank 0 waits in a dispatch whose second half rank 1 holds back.
  void SetUp() override {
    world_.add_rank(0);
    world_.add_rank(0);
    world_.make_group({0, 1}, "op_ms=3000");
    world_.rank(0).send("round tokens=40");
    ASSERT_EQ(world_.rank(1).ask("plan tokens=40").status, "ok");
  }
  void poke(const std::string& what) { ASSERT_EQ(world_.rank(1).ask("poke what=" + what).status, "ok"); }
  void expect_error_in_time() {
    const Reply reply = world_.rank(0).reply();
    EXPECT_NE(reply.status, "ok");
    EXPECT_NE(reply.status, "silent") << reply.text;
    expect_alive();
  }
  // It answers, and the daemon serves others.
  void expect_alive() {
    EXPECT_NE(world_.rank(0).ask("status").status, "silent");
    EXPECT_TRUE(world_.host(0).alive());
  }

  World world_{1};
};

TEST_F(Poke, CountsThatChangeAfterTheyWereRead) {
  poke("slice");
  world_.rank(1).send("run");
  EXPECT_NE(world_.rank(0).reply().status, "silent");
  expect_alive();
}

TEST_F(Poke, AnOfferWhoseSizeOverflows) {
  ASSERT_EQ(world_.rank(1).ask("canary bytes=65536").status, "ok");  // a segment to point into
  poke("span");
  world_.rank(1).send("run");
  EXPECT_NE(world_.rank(0).reply().status, "silent");
  expect_alive();
}

TEST_F(Poke, APoisonThatMeansSuccess) {
  poke("poison");
  expect_error_in_time();
}

TEST_F(Poke, TheWakeWordAlone) {
  poke("wake");
  const Reply reply = world_.rank(0).reply();
  EXPECT_EQ(reply.status, "protocol");
  EXPECT_THAT(reply.text, HasSubstr("wake word of rank 0"));
}

TEST_F(Poke, CompletedBeyondWhatHappened) {
  poke("completed");
  world_.rank(1).send("run");
  expect_error_in_time();
}

}  // namespace
}  // namespace railhead::test
