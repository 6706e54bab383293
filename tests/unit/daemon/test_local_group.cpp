// One group of one daemon, without processes, RPC or network: what its ranks and the other daemons say is played.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "daemon/group/local_group.hpp"
#include "ipc/layout/rings.hpp"

namespace railhead::daemon {
namespace {

using testing::HasSubstr;

mesh::HostId host(std::uint8_t n) {
  mesh::HostId id;
  id.bytes[0] = n;
  return id;
}

// Takes everything, does nothing.
class IdleProxy final : public Proxy {
 public:
  std::vector<std::uint16_t> quiesced;  // domains
  void open_group(GroupRails) override {}
  void connect_group(const GroupKey&, std::uint16_t, WireOffer) override {}
  void close_group(const GroupKey&, CloseMode) override {}
  void peer_quiesced(const GroupKey&, std::uint16_t domain,
                     std::vector<std::pair<std::uint16_t, std::uint64_t>>) override {
    quiesced.push_back(domain);
  }
  void peer_lost(const DaemonId&, const Status&) override {}
  [[nodiscard]] int bell() const override { return -1; }
  [[nodiscard]] std::string fabric_address() const override { return {}; }
  void report(std::function<void(ProxyReport)>) override {}
};

// Ranks of host 1, which coordinates, and of host 2; the id is of host 1.
class LocalGroupTest : public testing::Test {
 protected:
  // domain_of_rank: 0 = here, 1 = at host 2.
  void join(std::vector<std::uint16_t> domain_of_rank) {
    params_.ranks = static_cast<std::uint32_t>(domain_of_rank.size());
    params_.experts = 2 * params_.ranks;
    params_.hidden = 64;
    params_.topk = 2;
    UniqueId id;
    id.host = host(1);
    group_ = std::make_shared<LocalGroup>(id, params_, surroundings());
    domain_of_rank_ = std::move(domain_of_rank);
    for (std::uint32_t r = 0; r < params_.ranks; ++r) {
      if (domain_of_rank_[r] == 0)
        group_->join(r, {1, {100 + static_cast<std::int32_t>(r)}}, params_, [](const auto&) {});
    }
  }
  [[nodiscard]] MapMessage map() const {
    MapMessage map{7, {{host(1), "here"}}, domain_of_rank_};
    if (domain_of_rank_.back() == 1) map.daemons.push_back({host(2), "there"});
    return map;
  }
  void attach(std::uint32_t rank) {
    std::optional<ArenaSegment> rail;
    if (group_->shape()->domains() > 1) {
      auto made = ipc::Segment::create("rail", ipc::RailSegmentLayout(*group_->shape(), rank).bytes());
      ASSERT_TRUE(made);
      rail = ArenaSegment{ipc::SegmentKind::rail, made->bytes(), ipc::UniqueFd(::dup(made->fd()))};
      rails_.push_back(std::move(*made));
    }
    group_->attach(rank, std::move(rail), [this](const Result<Attached>& attached) {
      if (attached) words_fd_.reset(::dup(attached->group_words));
    });
  }
  void run(std::vector<std::uint16_t> domain_of_rank) {
    join(std::move(domain_of_rank));
    say(1, map());
    for (std::uint32_t r = 0; r < params_.ranks; ++r) {
      if (domain_of_rank_[r] == 0) attach(r);
    }
    if (domain_of_rank_.back() == 1) {
      group_->rails_opened(std::vector<WireOffer>(2));
      group_->rails_connected(1, {});
    }
    say(1, CommitMessage{});
    ASSERT_EQ(group_->state(), LocalGroup::State::running);
    const std::uint64_t bytes = ipc::GroupSegmentLayout(*group_->shape(), 0).bytes();
    auto mapped =
        ipc::Segment::map(ipc::UniqueFd(::dup(words_fd_.get())), bytes, ipc::Access::read_write, ipc::Prefault::no);
    ASSERT_TRUE(mapped);
    memory_ = std::move(*mapped);
    words_ = ipc::GroupSegment(memory_.data(), *group_->shape(), 0);
  }
  template <class Body>
  void say(std::uint8_t from, Body body) {
    group_->on_message(host(from), {group_->id().key, std::move(body)});
  }
  void set_progress(std::uint32_t local, std::uint64_t planned, std::uint64_t completed) {
    ipc::store_relaxed(words_.live(local).planned, planned);
    ipc::store_relaxed(words_.live(local).completed, completed);
  }
  std::uint64_t& poison_word() { return *reinterpret_cast<std::uint64_t*>(memory_.data()); }
  void pass_time() {
    for (const auto& task : std::exchange(timers_, {})) task();
  }

  ipc::GroupParams params_;
  std::vector<std::uint16_t> domain_of_rank_;
  std::shared_ptr<LocalGroup> group_;
  ipc::UniqueFd words_fd_;
  ipc::Segment memory_;  // the group words, as a rank maps them
  ipc::GroupSegment words_;
  std::vector<ipc::Segment> rails_;
  std::vector<GroupMessage> sent_;
  IdleProxy proxy_;
  std::vector<std::function<void()>> timers_;

 private:
  GroupSurroundings surroundings() {
    GroupSurroundings around;
    around.host = host(1);
    around.endpoint = "here";
    around.log = &log_;
    around.proxies = {&proxy_};
    around.send = [this](const DaemonEntry&, GroupMessage message) { sent_.push_back(std::move(message)); };
    around.retain = [](const DaemonEntry&, bool) {};
    around.after = [this](std::chrono::milliseconds, std::function<void()> task) {
      timers_.push_back(std::move(task));
    };
    around.quota_left = [] { return std::uint64_t{1} << 30; };
    around.changed = [] {};
    return around;
  }

  log::Log log_ = *log::Log::make({"error", "stderr"});
};

TEST_F(LocalGroupTest, ARankThatLeavesBetweenOperationsEndsTheGroupWhenTheOthersHaveFinished) {
  run({0, 0});
  set_progress(0, 5, 4);
  set_progress(1, 5, 5);
  group_->lost(1, "killed");
  EXPECT_EQ(group_->state(), LocalGroup::State::running);
  set_progress(0, 5, 5);
  pass_time();
  EXPECT_EQ(group_->state(), LocalGroup::State::ended);
  EXPECT_THAT(group_->end().message(), HasSubstr("rank 1 left the group after op 5"));
}

// It may be stopped for hours.
TEST_F(LocalGroupTest, ARankThatHasNotFinishedIsLookedAtByOneTimerHoweverManyLeft) {
  run({0, 0, 0, 0});
  set_progress(0, 5, 4);
  for (std::uint32_t rank = 1; rank < 4; ++rank) set_progress(rank, 5, 5);
  for (std::uint32_t rank = 1; rank < 4; ++rank) group_->leave(rank);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(group_->state(), LocalGroup::State::running);
    EXPECT_EQ(timers_.size(), 1U);
    pass_time();
  }
  set_progress(0, 5, 5);
  pass_time();
  EXPECT_EQ(group_->state(), LocalGroup::State::ended);
}

// The daemons that such a map names have no say.
TEST_F(LocalGroupTest, AMapThatDoesNotFitIsRefusedAndForgotten) {
  join({0, 1});
  MapMessage wrong = map();
  wrong.domain_of_rank = {1, 0};
  say(1, wrong);
  EXPECT_EQ(group_->state(), LocalGroup::State::ended);
  EXPECT_EQ(group_->end().code(), Code::protocol);
  say(2, LeftMessage{1, 0, "closed the group"});
  say(2, FrozenMessage{{Code::aborted, "aborted"}, 1, 0});
  group_->peer_lost({host(2), "there"}, {Code::peer_lost, "cut"});
  EXPECT_TRUE(group_->daemons().empty());
}

TEST_F(LocalGroupTest, AMapForMoreProxiesThanThereAreDoesNotFit) {
  join({0, 1});
  MapMessage wrong = map();
  wrong.proxies = 2;
  say(1, wrong);
  EXPECT_EQ(group_->end().code(), Code::protocol);
}

TEST_F(LocalGroupTest, TheLossOfAnEarlierDaemonOfAHostIsNotThatOfTheOneThatCameAfterIt) {
  join({0, 1});
  say(1, map());
  group_->peer_lost({host(2), "where it was before"}, {Code::peer_lost, "cut"});
  EXPECT_EQ(group_->state(), LocalGroup::State::attaching);
  group_->peer_lost({host(2), "there"}, {Code::peer_lost, "cut"});
  EXPECT_EQ(group_->state(), LocalGroup::State::ended);
  EXPECT_EQ(group_->end().code(), Code::peer_lost);
}

// The coordinator may still reach it, and would wait for us.
TEST_F(LocalGroupTest, WhoCannotTakePartTellsTheCoordinatorWhy) {
  const Status cut(Code::peer_lost, "cut");
  const std::vector<std::function<void()>> failures = {
      [&] {
        group_->peer_lost({host(2), "there"}, cut);
      },
      [&] {
        attach(0);
        group_->rails_opened(fail(cut));
      },
      [&] {
        attach(0);
        group_->rails_opened(std::vector<WireOffer>(2));
        group_->rails_connected(1, fail(cut));
      },
  };
  for (const auto& fails : failures) {
    join({0, 1});
    say(1, map());
    fails();
    EXPECT_EQ(group_->state(), LocalGroup::State::ended);
    ASSERT_TRUE(std::holds_alternative<WithdrawMessage>(sent_.back().body));
    const auto& withdraw = std::get<WithdrawMessage>(sent_.back().body);
    EXPECT_EQ(withdraw.rank, 0U);
    EXPECT_EQ(withdraw.reason.code(), Code::peer_lost);
    EXPECT_THAT(withdraw.reason.message(), HasSubstr("cut"));
  }
}

TEST_F(LocalGroupTest, AForgedCountOfCompletedOperationsEndsTheGroupAtOnce) {
  run({0, 0});
  set_progress(0, 5, 4);
  set_progress(1, std::uint64_t{1} << 40, std::uint64_t{1} << 40);
  group_->lost(1, "killed");
  EXPECT_EQ(group_->state(), LocalGroup::State::ended);
  EXPECT_EQ(group_->end().code(), Code::rank_lost);
  EXPECT_THAT(group_->end().message(), HasSubstr("rank 1 (pid 101) lost: killed"));
  EXPECT_THAT(group_->end().message(), HasSubstr("says 1099511627776, the ranks of this host have published 5"));
  EXPECT_TRUE(words_.poisoned());
}

TEST_F(LocalGroupTest, AForgedCountOfAnotherHostEndsTheGroupAtOnce) {
  run({0, 1});
  set_progress(0, 5, 4);
  say(2, LeftMessage{1, std::uint64_t{1} << 40, "killed"});
  pass_time();  // the other daemon does not answer
  EXPECT_EQ(group_->state(), LocalGroup::State::ended);
  EXPECT_THAT(group_->end().message(), HasSubstr("rank 1 lost: killed; its count of completed operations says"));
}

TEST_F(LocalGroupTest, AFailedPathIsToldAlthoughARankWroteThatNobodyNeedsIt) {
  run({0, 1});
  words_.set_left(1, 3);
  group_->rails_failed(1, ipc::Poison::kNoRank, {Code::peer_lost, "cut"});
  pass_time();
  EXPECT_EQ(group_->state(), LocalGroup::State::ended);
  EXPECT_EQ(group_->end().code(), Code::peer_lost);
}

TEST_F(LocalGroupTest, APathToRanksThatLeftMayFail) {
  run({0, 1});
  set_progress(0, 5, 4);
  say(2, LeftMessage{1, 5, "closed the group"});
  group_->rails_failed(1, ipc::Poison::kNoRank, {Code::peer_lost, "cut"});
  EXPECT_EQ(group_->state(), LocalGroup::State::running);
}

// The other daemon gave up while the ranks of this one were still attaching. It says so once.
TEST_F(LocalGroupTest, WhatADaemonPostedIsKnownAlthoughItSaidSoBeforeOurRailsWereOpen) {
  join({0, 1});
  say(1, map());
  say(2, QuiescedMessage{{{3, 7}}});
  EXPECT_TRUE(proxy_.quiesced.empty());
  attach(0);
  EXPECT_EQ(proxy_.quiesced, std::vector<std::uint16_t>{1});
}

TEST_F(LocalGroupTest, AReasonOfAnyLengthIsCut) {
  run({0, 0});
  group_->abort(1, {Code::aborted, std::string(1 << 20, 'x')});
  ASSERT_EQ(group_->state(), LocalGroup::State::ended);
  EXPECT_LT(group_->end().message().size(), ipc::kPoisonText);
  EXPECT_THAT(words_.end_text(), HasSubstr("last operation complete")) << "the end of the sentence is there, too";
}

TEST_F(LocalGroupTest, WhatARankWritesIntoThePoisonWordDoesNotHideTheEnd) {
  run({0, 0});
  ipc::store_relaxed(poison_word(), std::uint64_t{1});
  set_progress(1, 2, 1);
  group_->lost(1, "killed");
  ASSERT_EQ(group_->state(), LocalGroup::State::ended);
  EXPECT_EQ(words_.poison().code, Code::rank_lost);
  ipc::store_relaxed(poison_word(), std::uint64_t{0});
  pass_time();
  EXPECT_EQ(words_.poison().code, Code::rank_lost) << "rank 0 has not acknowledged the end";
  EXPECT_THAT(words_.end_text(), HasSubstr("rank 1 (pid 101) lost: killed"));
}

// The owner takes pages out of its rail while the daemon takes it over: that is refused or comes too late. A page that
// came back would be one that the daemon paid for.
TEST_F(LocalGroupTest, ARailWithHolesIsNotTakenOver) {
  for (int delay = 0; delay < 200; ++delay) {
    join({0, 1});
    say(1, map());
    auto rail = ipc::Segment::create("rail", ipc::RailSegmentLayout(*group_->shape(), 0).bytes());
    ASSERT_TRUE(rail);
    std::memset(rail->data(), 0x55, rail->bytes());
    std::atomic<bool> go = false;
    std::thread owner([&] {
      while (!go) continue;
      for (int i = 0; i < delay * 10; ++i) (void)go.load();
      const auto page = static_cast<off_t>(ipc::page_bytes());
      auto at = static_cast<off_t>(rail->bytes());
      while (at > 0 && ::fallocate(rail->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at -= page, page) == 0)
        continue;
    });
    bool refused = false;
    ArenaSegment offer{ipc::SegmentKind::rail, rail->bytes(), ipc::UniqueFd(::dup(rail->fd()))};
    go = true;
    group_->attach(0, std::move(offer), [&](const Result<Attached>& attached) { refused = !attached; });
    owner.join();
    if (refused) continue;
    const auto bytes = rail->span();
    ASSERT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0x55}; })) << delay;
  }
}

std::uint64_t bytes_present(int fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

// A client that keeps its mapping does so at its own cost.
TEST_F(LocalGroupTest, ThePagesOfTheControlWordsAreGivenBackWhenTheLastRankIsGone) {
  run({0, 0});
  EXPECT_NE(::fcntl(words_fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0) << "it would keep the pages";
  group_->leave(0);
  EXPECT_FALSE(group_->empty());
  group_->leave(1);
  ASSERT_TRUE(group_->empty());
  EXPECT_EQ(bytes_present(words_fd_.get()), memory_.bytes());
  group_->take_back_words();
  EXPECT_EQ(bytes_present(words_fd_.get()), 0U);
  EXPECT_EQ(group_->control_bytes(), 0U);
}

// It is evicted, but lives: the reason is there until it has closed the group or ended.
TEST_F(LocalGroupTest, ALostRankWhoseProcessRunsKeepsTheGroup) {
  run({0, 0});
  group_->lost(1, "evicted");
  group_->leave(0);
  EXPECT_FALSE(group_->empty());
  EXPECT_TRUE(words_.poisoned());
  group_->fenced(1);
  EXPECT_TRUE(group_->empty());
}

TEST_F(LocalGroupTest, ALostRankThatClosesAfterwardsKeepsNothing) {
  run({0, 0});
  group_->lost(1, "evicted");
  group_->leave(0);
  group_->leave(1);
  EXPECT_TRUE(group_->empty());
}

}  // namespace
}  // namespace railhead::daemon
