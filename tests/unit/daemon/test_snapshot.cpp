#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "daemon/control/snapshot.hpp"
#include "ipc/pidfd.hpp"

namespace railhead::daemon {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Snapshot : public testing::Test {
 protected:
  Snapshot() {
    RegistrySurroundings around;
    around.host = host_;
    around.endpoint = "tcp://here";
    around.log = &log_;
    around.config = &config_;
    around.proxies = {nullptr};
    around.post = [](std::function<void()>) {};
    around.mesh_send = [](const DaemonEntry&, const GroupMessage&) { return Status(); };
    around.retain = [](const DaemonEntry&, bool) {};
    around.after = [](std::chrono::milliseconds, std::function<void()>) {};
    around.changed = [] {};
    groups_ = std::make_unique<GroupRegistry>(std::move(around));
  }
  json take(const std::string& what, std::optional<Drain> drain = {}, std::vector<std::string> troubles = {}) {
    const std::vector<ProxyReport> proxies(1);
    return json::parse(make_snapshot(what, {config_,
                                            host_,
                                            "tcp://here",
                                            std::chrono::steady_clock::now(),
                                            sessions_,
                                            *groups_,
                                            {},
                                            proxies,
                                            turned_away_,
                                            "/run/epd/epd.sock",
                                            drain,
                                            std::move(troubles)}));
  }
  std::shared_ptr<Session> session(const std::string& job) {
    return *sessions_.open({::getpid()}, 7, job, "build", std::move(*ipc::open_own_pidfd()));
  }
  // A group that one of two ranks has joined.
  std::shared_ptr<LocalGroup> group() {
    ipc::GroupParams params;
    params.ranks = 2;
    params.experts = 4;
    params.hidden = 8;
    params.topk = 1;
    UniqueId id = *groups_->make_id(3);
    id.key[0] = 0xab;
    auto made = *groups_->open(id, params);
    made->join(1, {3, 42}, params, [](const Result<Mapped>&) {});
    return made;
  }

  config::Config config_;
  mesh::HostId host_{{1, 2, 3}};
  log::Log log_ = *log::Log::make({"error", "stderr"});
  TurnedAway turned_away_;
  SessionTable sessions_{10, [](std::uint64_t, ipc::Life) {}};
  std::unique_ptr<GroupRegistry> groups_;
};

TEST_F(Snapshot, AnUnknownNameIsNothing) {
  const std::vector<ProxyReport> proxies;
  EXPECT_EQ(make_snapshot("secrets", {config_, host_, "", {}, sessions_, *groups_, {}, proxies, turned_away_, ""}), "");
}

TEST_F(Snapshot, AnIdleDaemonIsReady) {
  const json idle = take("status");
  EXPECT_EQ(idle["state"], "READY");
  EXPECT_EQ(idle["pid"], ::getpid());
  EXPECT_EQ(idle["sessions"], 0);
  EXPECT_EQ(idle["host_id"], host_.hex());
  EXPECT_FALSE(idle.contains("draining"));
}

TEST_F(Snapshot, ADrainingOneIsDegradedAndSaysForWhomItWaits) {
  const auto now = std::chrono::steady_clock::now();
  const Drain drain{now - std::chrono::seconds(3), now + std::chrono::seconds(27)};
  const auto over = session("over");
  sessions_.end(*over, "evicted");
  for (int i = 0; i < 9; ++i) session("job");
  group();
  const json status = take("status", drain);
  EXPECT_EQ(status["state"], "DEGRADED");
  EXPECT_EQ(status["reasons"][0],
            "draining: 9 sessions, 1 group still open, since it was told to stop 3 s ago; ends in 27 s at the latest, "
            "new sessions and groups are refused");
  EXPECT_GE(status["draining"]["since_ms"], 3'000);
  EXPECT_LE(status["draining"]["ends_in_ms"], 27'000);
  const json wait = take("why", drain)["waits"][0];
  EXPECT_THAT(wait["text"].get<std::string>(), HasSubstr("waits for sessions 2 (pid"));
  EXPECT_THAT(wait["text"].get<std::string>(), HasSubstr(" and 1 more to close, at most "));
  EXPECT_GE(wait["since_ms"], 3'000);
}

TEST_F(Snapshot, ADeadlineThatIsOverIsZeroNotHuge) {
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(take("status", Drain{now, now - std::chrono::seconds(1)})["draining"]["ends_in_ms"], 0);
}

TEST_F(Snapshot, WhatHasFailedForGoodIsDegraded) {
  const json status = take("status", {}, {"no other daemon can be reached any more"});
  EXPECT_EQ(status["state"], "DEGRADED");
  EXPECT_EQ(status["reasons"], json::array({"no other daemon can be reached any more"}));
}

TEST_F(Snapshot, ASessionWhoseDeathIsNotWatchedIsDegraded) {
  const auto unwatched = session("job");
  unwatched->unwatched = {Code::system, "no thread"};
  const json status = take("status");
  EXPECT_EQ(status["state"], "DEGRADED");
  EXPECT_THAT(status["reasons"][0].get<std::string>(), HasSubstr("session 1 (pid " + std::to_string(::getpid()) + ")"));
  EXPECT_THAT(status["reasons"][0].get<std::string>(), HasSubstr("no thread"));
  sessions_.end(*unwatched, "evicted");
  EXPECT_EQ(take("status")["state"], "READY");
}

TEST_F(Snapshot, SessionsAreShownWhateverTheirLabels) {
  session("train-7");
  session("\xff\xfe\"");
  const json list = take("sessions")["sessions"];
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["job"], "train-7");
  EXPECT_EQ(list[0]["uid"], 7);
  EXPECT_EQ(list[0]["ended"], false);
}

TEST_F(Snapshot, WhyNamesASessionThatIsOverWhileItsProcessIsNot) {
  const auto over = session("job");
  sessions_.end(*over, "evicted");
  const json waits = take("why")["waits"];
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0]["session"], over->id);
  EXPECT_THAT(waits[0]["text"].get<std::string>(), HasSubstr("pid " + std::to_string(::getpid())));
}

TEST_F(Snapshot, AGroupThatIsBeingMadeNamesWhoIsMissing) {
  const auto made = group();
  json groups = take("groups")["groups"];
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0]["state"], "joining");
  EXPECT_EQ(groups[0]["local_ranks"][0]["rank"], 1);
  EXPECT_EQ(groups[0]["local_ranks"][0]["pid"], 42);
  made->on_message(host_, {made->id().key, MissingMessage{{0}}});
  const json waits = take("why")["waits"];
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0]["missing"], json::array({0}));
  EXPECT_THAT(waits[0]["text"].get<std::string>(), HasSubstr("waits for rank 0 to join"));
  EXPECT_TRUE(waits[0].contains("since_ms"));
}

TEST_F(Snapshot, ARefusedGroupSaysWhy) {
  const auto made = group();
  made->on_message(host_, {made->id().key, RefusedMessage{{Code::mismatch, "hidden differs"}}});
  const json entry = take("groups")["groups"][0];
  EXPECT_EQ(entry["state"], "ended");
  EXPECT_EQ(entry["ended"]["code"], "mismatch");
  const json wait = take("why")["waits"][0];
  EXPECT_EQ(wait["code"], "mismatch");
  EXPECT_TRUE(wait.contains("since_ms"));
  EXPECT_EQ(wait["not_closed"], json::array()) << "its join failed: there is nothing to close";
  for (const char* const what : {"arenas", "rings", "peers"}) EXPECT_NO_THROW(take(what)) << what;
}

}  // namespace
}  // namespace railhead::daemon
