// Engines stepped by hand: what ranks do falls exactly where a test wants it.
#include "daemon/proxy/engine.hpp"
#include "tests/unit/proxy/fake_daemon.hpp"

namespace railhead::daemon {
namespace {

struct Node {
  Node(std::uint8_t id, const std::shared_ptr<fabric::LoopbackHub>& hub) {
    ProxyConfig config;
    config.host.fill(id);
    config.rings_per_peer = 64;
    host = config.host;
    engine = std::make_unique<rail::Engine>(std::move(*fabric::LoopbackFabric::create(hub)), config, events());
  }
  ProxyEvents events() {
    return {
        .opened = [this](const GroupKey&, auto offers) { log.opened = std::move(offers); },
        .connected = [this](const GroupKey&, std::uint16_t d, auto result) { log.connected.emplace(d, result); },
        .failed =
            [this](const GroupKey&, std::uint16_t d, std::uint16_t r, Status s) {
              log.failures.push_back({d, r, std::move(s)});
            },
        .quiesced = [this](const GroupKey&, std::uint16_t d, Posted p) { log.quiesced.emplace(d, std::move(p)); },
        .closed = [this](const GroupKey&) { log.closed = true; },
    };
  }

  HostId host{};
  GroupLog log;
  std::unique_ptr<rail::Engine> engine;
};

// One rank on either side.
class EngineDrain : public testing::Test {
 protected:
  void SetUp() override {
    ipc::GroupParams params;
    params.ranks = 2;
    params.experts = 4;
    params.hidden = 256;
    params.topk = 2;
    params.chunk_bytes = 4096;
    shape_ = std::make_shared<ipc::GroupShape>(params, ipc::GroupMap{1, {0, 1}});
    for (std::uint16_t n = 0; n < 2; ++n) open(n);
    for (std::uint16_t n = 0; n < 2; ++n) {
      ASSERT_TRUE(nodes_[n]->log.opened.has_value() && *nodes_[n]->log.opened);
    }
    for (std::uint16_t n = 0; n < 2; ++n) nodes_[n]->engine->connect(key_, 1 - n, (**nodes_[1 - n]->log.opened)[n]);
    for (int i = 0; i < 1000 && (nodes_[0]->log.connected.empty() || nodes_[1]->log.connected.empty()); ++i) step();
    ASSERT_TRUE(nodes_[0]->log.connected.at(1) && nodes_[1]->log.connected.at(0));
  }
  void step() {
    for (const auto& node : nodes_) node->engine->step();
  }
  // Keeps a chunk in the submission ring at all times, all received.
  void submit_and_step() {
    ranks_[0]->try_send(0, 64);
    step();
    for (std::uint32_t rx = 0; rx < ranks_[1]->rings.rx_count(); ++rx) ranks_[1]->try_receive(rx, 64, wrong_);
  }

  std::shared_ptr<ipc::GroupShape> shape_;
  std::vector<std::unique_ptr<FakeRank>> ranks_;
  std::vector<std::unique_ptr<Pages>> boards_;
  std::vector<std::unique_ptr<Node>> nodes_;
  GroupKey key_{1};
  std::uint64_t wrong_ = 0;

 private:
  void open(std::uint16_t n) {
    if (nodes_.empty()) {
      for (std::uint8_t id = 1; id <= 2; ++id) nodes_.push_back(std::make_unique<Node>(id, hub_));
    }
    ranks_.push_back(std::make_unique<FakeRank>(*shape_, n, std::uint8_t{5}));
    boards_.push_back(std::make_unique<Pages>(ipc::GroupSegmentLayout(*shape_, n).bytes()));
    GroupRails rails;
    rails.key = key_;
    rails.shape = shape_;
    rails.domain = n;
    rails.segment = {boards_[n]->data(), *shape_, n};
    rails.generation = 5;
    rails.ranks.push_back({n, ranks_[n]->rail.data(), ranks_[n]->rail.bytes(), ranks_[n]->words.data()});
    rails.daemon_of_domain = {{nodes_[0]->host, ""}, {nodes_[1]->host, ""}};
    nodes_[n]->engine->open(std::move(rails));
  }

  std::shared_ptr<fabric::LoopbackHub> hub_ = std::make_shared<fabric::LoopbackHub>();
};

TEST_F(EngineDrain, WhatWasSubmittedBeforeIsPosted) {
  std::uint64_t submitted = 0;
  while (ranks_[0]->try_send(0, 64)) ++submitted;
  ASSERT_GT(submitted, 1U);
  nodes_[0]->engine->close(key_, CloseMode::drain);
  for (int i = 0; i < 1000 && nodes_[0]->log.quiesced.empty(); ++i) step();
  ASSERT_EQ(nodes_[0]->log.quiesced.at(1).size(), 1U);
  EXPECT_EQ(nodes_[0]->log.quiesced.at(1)[0].second, submitted);
}

TEST_F(EngineDrain, ARankThatNeverStopsSubmittingHoldsUpNobody) {
  nodes_[0]->engine->close(key_, CloseMode::drain);
  const std::uint64_t room = ipc::RailWordsLayout(*shape_, 0).submit_capacity();
  for (std::uint64_t i = 0; i < 20 * room && nodes_[0]->log.quiesced.empty(); ++i) submit_and_step();
  EXPECT_FALSE(nodes_[0]->log.quiesced.empty());
  EXPECT_TRUE(nodes_[0]->log.failures.empty());
}

}  // namespace
}  // namespace railhead::daemon
