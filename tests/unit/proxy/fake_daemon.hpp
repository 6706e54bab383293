// Test doubles around real proxies: daemons without control plane, groups without sessions, ranks without kernels.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/fabric/loopback.hpp"
#include "daemon/proxy/proxy.hpp"
#include "ipc/deadline.hpp"
#include "ipc/layout/rail_words.hpp"

namespace railhead::daemon {

using Posted = std::vector<std::pair<std::uint16_t, std::uint64_t>>;

inline ipc::Deadline soon() {
  return ipc::Deadline::after(std::chrono::seconds(20));
}

// Page-aligned zeroed memory.
class Pages {
 public:
  explicit Pages(std::uint64_t bytes)
      : bytes_((bytes + 4095) / 4096 * 4096), data_(static_cast<std::byte*>(std::aligned_alloc(4096, bytes_ + 4096))) {
    std::memset(data_.get(), 0, bytes_);
  }
  std::byte* data() const { return data_.get(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::uint64_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

// What a proxy reported about one group.
struct GroupLog {
  std::optional<Result<std::vector<WireOffer>>> opened;
  std::map<std::uint16_t, Result<void>> connected;
  struct Failure {
    std::uint16_t domain;
    std::uint16_t rank;
    Status status;
  };
  std::vector<Failure> failures;
  std::map<std::uint16_t, Posted> quiesced;
  bool closed = false;
};

// A proxy and what it says. Test thread and proxy thread share the logs.
class Daemon {
 public:
  Daemon(std::uint8_t id, fabric::FabricConfig fabric, ProxyConfig config = {}) {
    host.fill(id);
    config.host = host;
    config.fabric = std::move(fabric);
    config.page = reinterpret_cast<ipc::DaemonPage*>(page_.data());
    config.rings_per_peer = 512;
    auto started = Proxy::start(config, events());
    if (!started) throw std::runtime_error(started.error().to_string());
    proxy = std::move(*started);
  }

  // Waits until `what` holds of the group's log.
  bool wait(const GroupKey& key, const std::function<bool(const GroupLog&)>& what, ipc::Deadline deadline = soon()) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline.at(), [&] { return what(logs_[key]); });
  }
  GroupLog log(const GroupKey& key) {
    const std::lock_guard lock(mutex_);
    return logs_[key];
  }
  void forget_connected(const GroupKey& key) {
    const std::lock_guard lock(mutex_);
    logs_[key].connected.clear();
  }
  ProxyReport report() {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<ProxyReport> out;
    proxy->report([&](ProxyReport report) {
      const std::lock_guard lock(mutex);
      out = std::move(report);
      done.notify_one();
    });
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return out.has_value(); });
    return *out;
  }
  bool sleeping() const { return ipc::load_acquire(page().sleeping[0]) != 0; }
  void ring_if_needed() const {
    const std::uint64_t one = 1;
    if (!ipc::needs_bell(page(), 0)) return;
    EXPECT_EQ(::write(proxy->bell(), &one, sizeof(one)), 8);
  }

  HostId host{};
  std::string endpoint = "the only one of its host";

 private:
  const ipc::DaemonPage& page() const { return *reinterpret_cast<const ipc::DaemonPage*>(page_.data()); }

  template <class Change>
  void note(const GroupKey& key, Change change) {
    const std::lock_guard lock(mutex_);
    change(logs_[key]);
    changed_.notify_all();
  }
  ProxyEvents events() {
    return {
        .opened = [this](const GroupKey& k, auto r) { note(k, [&](GroupLog& l) { l.opened = std::move(r); }); },
        .connected = [this](const GroupKey& k, std::uint16_t d,
                            Result<void> r) { note(k, [&](GroupLog& l) { l.connected.emplace(d, std::move(r)); }); },
        .failed = [this](const GroupKey& k, std::uint16_t d, std::uint16_t r,
                         Status s) { note(k, [&](GroupLog& l) {
                                       l.failures.push_back({d, r, std::move(s)});
                                     }); },
        .quiesced = [this](const GroupKey& k, std::uint16_t d,
                           Posted p) { note(k, [&](GroupLog& l) { l.quiesced.emplace(d, std::move(p)); }); },
        .closed = [this](const GroupKey& k) { note(k, [](GroupLog& l) { l.closed = true; }); },
    };
  }

  Pages page_{4096};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<GroupKey, GroupLog> logs_;

 public:
  // Group memory that the proxy may touch until it ends.
  std::vector<std::shared_ptr<void>> kept;
  std::unique_ptr<Proxy> proxy;  // last: ends first
};

// A rank that fills slots with a pattern, checks what it gets, and returns credits.
class FakeRank {
 public:
  FakeRank(const ipc::GroupShape& shape, std::uint16_t number, std::uint8_t generation)
      : rank(number),
        rings(shape, number),
        layout(shape, number),
        rail(layout.bytes()),
        words(ipc::RailWordsLayout(shape, number).bytes()),
        client(ipc::RailWordsClient::attach(words.data(), ipc::RailWordsLayout(shape, number), generation).value()),
        shape_(shape),
        sent(rings.tx_count(), 0),
        received(rings.rx_count(), 0) {}

  // Puts the pattern of the next slot into tx ring `tx` and submits it; false while there is no credit.
  bool try_send(std::uint32_t tx, std::uint32_t bytes) {
    if (sent[tx] >= client.granted(tx) + shape_.params().ring_slots) return false;
    const auto target = rings.target_of_tx(shape_, tx);
    const auto seed = pattern(target.rank, target.rx, sent[tx]);
    auto* const at = reinterpret_cast<std::uint64_t*>(rail.data() + layout.tx_slot(tx, sent[tx]));
    for (std::uint32_t i = 0; i < bytes / 8; ++i) at[i] = seed + i;
    const ipc::RailRequest request{ipc::RailVerb::chunk, static_cast<std::uint16_t>(tx),
                                   static_cast<std::uint32_t>(sent[tx] & 0xffffff), bytes};
    if (!client.submit(request)) return false;
    ++sent[tx];
    return true;
  }
  // Checks and consumes what has arrived on rx ring `rx`; counts wrong words.
  bool try_receive(std::uint32_t rx, std::uint32_t bytes, std::uint64_t& wrong) {
    const std::uint64_t arrived = client.arrived(rx);
    if (arrived == received[rx]) return false;
    for (; received[rx] < arrived; ++received[rx]) {
      const auto seed = pattern(rank, rx, received[rx]);
      const auto* const at = reinterpret_cast<const std::uint64_t*>(rail.data() + layout.rx_slot(rx, received[rx]));
      for (std::uint32_t i = 0; i < bytes / 8; ++i) wrong += at[i] != seed + i ? 1 : 0;
    }
    return client.submit({ipc::RailVerb::credit, static_cast<std::uint16_t>(rx), 0, arrived});
  }
  // Publishes the header of `op` towards the n-th other domain. The slice tells rank, domain and operation.
  void send_header(std::uint16_t other, std::uint16_t domain, std::uint64_t op,
                   const std::function<void(ipc::OpHeader&)>& spoil = nullptr) {
    const std::uint32_t count = shape_.slice_words(domain);
    std::vector<std::uint32_t> slice(count, static_cast<std::uint32_t>(op * 1000 + rank));
    ipc::OpHeader header{};
    header.op = op;
    header.epoch = shape_.epoch();
    header.kind = 1;
    header.checksum = ipc::header_checksum(header, slice.data(), count);
    if (spoil) spoil(header);
    std::byte* const at = rail.data() + layout.header_slot(other, op);
    std::memcpy(at, &header, sizeof(header));
    std::memcpy(at + sizeof(header), slice.data(), count * 4);
    ASSERT_TRUE(client.submit({ipc::RailVerb::header, other, static_cast<std::uint32_t>(op), count}));
  }

  static std::uint64_t pattern(std::uint64_t to_rank, std::uint64_t rx, std::uint64_t sequence) {
    return (to_rank << 56) | (rx << 44) | (sequence << 20);
  }

  std::uint16_t rank;
  ipc::RailRings rings;
  ipc::RailSegmentLayout layout;
  Pages rail;
  Pages words;
  ipc::RailWordsClient client;

 private:
  const ipc::GroupShape& shape_;

 public:
  std::vector<std::uint64_t> sent;      // by tx ring
  std::vector<std::uint64_t> received;  // by rx ring
};

struct GroupSpec {
  std::vector<std::uint16_t> domain_of_rank{0, 0, 1, 1};
  std::uint32_t channels = 2;
  std::uint32_t depth = 2;
  std::uint32_t ring_slots = 4;
  std::uint32_t hidden = 256;
  std::uint32_t chunk_bytes = 4096;
};

// One group over several daemons: domain i at daemons[i].
class TestGroup {
 public:
  TestGroup(std::uint8_t id, std::vector<Daemon*> daemons, const GroupSpec& spec = {}) : daemons_(std::move(daemons)) {
    static std::uint32_t epoch = 0;
    key.fill(id);
    ipc::GroupParams params;
    params.ranks = static_cast<std::uint32_t>(spec.domain_of_rank.size());
    params.experts = params.ranks * 2;
    params.hidden = spec.hidden;
    params.topk = 2;
    params.channels = spec.channels;
    params.depth = spec.depth;
    params.ring_slots = spec.ring_slots;
    params.chunk_bytes = spec.chunk_bytes;
    EXPECT_TRUE(ipc::validate(params).has_value());
    shape = std::make_shared<ipc::GroupShape>(params, ipc::GroupMap{++epoch, spec.domain_of_rank});
    for (std::uint16_t r = 0; r < params.ranks; ++r)
      ranks.push_back(std::make_shared<FakeRank>(*shape, r, kGeneration));
    for (std::uint16_t d = 0; d < shape->domains(); ++d) {
      boards_.push_back(std::make_shared<Pages>(ipc::GroupSegmentLayout(*shape, d).bytes()));
    }
  }

  ipc::GroupSegment segment(std::uint16_t domain) { return {boards_[domain]->data(), *shape, domain}; }
  Daemon& daemon_of(std::uint16_t rank) { return *daemons_[shape->domain_of(rank)]; }
  FakeRank& rank(std::uint16_t r) { return *ranks[r]; }

  void open(std::uint16_t domain) {
    GroupRails rails;
    rails.key = key;
    rails.shape = shape;
    rails.domain = domain;
    rails.segment = segment(domain);
    rails.generation = kGeneration;
    for (const std::uint16_t r : shape->ranks_of(domain)) {
      daemons_[domain]->kept.push_back(ranks[r]);
      rails.ranks.push_back({r, ranks[r]->rail.data(), ranks[r]->rail.bytes(), ranks[r]->words.data()});
    }
    daemons_[domain]->kept.push_back(boards_[domain]);
    for (const Daemon* daemon : daemons_) rails.daemon_of_domain.push_back({daemon->host, daemon->endpoint});
    daemons_[domain]->proxy->open_group(std::move(rails));
  }
  Result<std::vector<WireOffer>> offers(std::uint16_t domain) {
    EXPECT_TRUE(daemons_[domain]->wait(key, [](const GroupLog& log) { return log.opened.has_value(); }));
    return *daemons_[domain]->log(key).opened;
  }
  // Opens everywhere, exchanges offers as the mesh does, waits for every path. The first error, if any. `offered` is
  // called when every offer was made and none was passed on.
  Result<void> establish(const std::function<void()>& offered = [] {}) {
    for (std::uint16_t d = 0; d < shape->domains(); ++d) open(d);
    for (std::uint16_t d = 0; d < shape->domains(); ++d) {
      if (auto made = offers(d); !made) return fail(made.error());
    }
    offered();
    for (std::uint16_t to = 0; to < shape->domains(); ++to) {
      for (std::uint16_t from = 0; from < shape->domains(); ++from) {
        if (from == to) continue;
        auto made = offers(from);
        if (!made) return fail(made.error());
        daemons_[to]->proxy->connect_group(key, from, (*made)[to]);
      }
    }
    for (std::uint16_t d = 0; d < shape->domains(); ++d) {
      const std::size_t others = shape->domains() - 1;
      EXPECT_TRUE(daemons_[d]->wait(key, [&](const GroupLog& log) { return log.connected.size() == others; }));
      for (const auto& [domain, result] : daemons_[d]->log(key).connected) {
        if (!result) return result;
      }
    }
    return {};
  }

  // Every rank sends `count` chunks on each of its rings and receives as many; true when all came, byte-exact.
  bool exchange(std::uint64_t count, std::uint32_t bytes) {
    std::vector<std::vector<std::uint64_t>> targets;
    for (const auto& r : ranks) targets.push_back(r->sent);
    std::uint64_t wrong = 0;
    const auto deadline = soon();
    for (bool done = false; !done;) {
      if (deadline.expired() || any_failure()) return false;
      done = true;
      bool any = false;
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        FakeRank& r = *ranks[i];
        for (std::uint32_t tx = 0; tx < r.sent.size(); ++tx) {
          if (r.sent[tx] < targets[i][tx] + count && r.try_send(tx, bytes)) any = true;
          if (r.sent[tx] < targets[i][tx] + count || r.client.granted(tx) < r.sent[tx]) done = false;
        }
        for (std::uint32_t rx = 0; rx < r.received.size(); ++rx) any |= r.try_receive(rx, bytes, wrong);
        if (any) daemon_of(r.rank).ring_if_needed();
      }
      if (!any) std::this_thread::yield();
    }
    return wrong == 0;
  }

  void begin_close(std::uint16_t domain) { daemons_[domain]->proxy->close_group(key, CloseMode::abandon); }
  // Passes on what `from` says it posted, as the mesh does.
  void pass_quiesced(std::uint16_t from) {
    const std::size_t others = shape->domains() - 1;
    ASSERT_TRUE(daemons_[from]->wait(key, [&](const GroupLog& log) { return log.quiesced.size() == others; }));
    for (auto& [domain, posted] : daemons_[from]->log(key).quiesced) {
      daemons_[domain]->proxy->peer_quiesced(key, from, posted);
    }
  }
  bool wait_closed(std::uint16_t domain) {
    return daemons_[domain]->wait(key, [](const GroupLog& log) { return log.closed; });
  }
  bool close() {
    for (std::uint16_t d = 0; d < shape->domains(); ++d) begin_close(d);
    for (std::uint16_t d = 0; d < shape->domains(); ++d) pass_quiesced(d);
    bool all = true;
    for (std::uint16_t d = 0; d < shape->domains(); ++d) all = wait_closed(d) && all;
    return all;
  }

  // Whether a daemon has reported a failure; says which.
  bool any_failure() {
    for (Daemon* const daemon : daemons_) {
      for (const auto& failure : daemon->log(key).failures) {
        ADD_FAILURE() << failure.status.to_string();
        return true;
      }
    }
    return false;
  }
  GroupLog log(std::uint16_t domain) { return daemons_[domain]->log(key); }
  bool wait_failed(std::uint16_t domain) {
    return daemons_[domain]->wait(key, [](const GroupLog& log) { return !log.failures.empty(); });
  }

  static constexpr std::uint8_t kGeneration = 5;
  GroupKey key{};
  std::shared_ptr<ipc::GroupShape> shape;
  std::vector<std::shared_ptr<FakeRank>> ranks;

 private:
  std::vector<Daemon*> daemons_;
  std::vector<std::shared_ptr<Pages>> boards_;
};

}  // namespace railhead::daemon
