// Whatever legal calls follow each other, the values are right and nobody waits for ever: random scripts of operations
// that all ranks follow, each in forms of its own (blocking, with events, planned, into too small a place, handles
// released early).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "tests/conformance/refusals.hpp"
#include "tests/support/lane.hpp"

namespace railhead::test {
namespace {

constexpr std::uint32_t kDepth = 4;
constexpr std::uint32_t kMostLive = 3;  // handles of a script at a time; a rank may be late with a release
constexpr std::uint32_t kMostHandles = 8;

using Random = std::mt19937_64;

bool chance(Random& random, std::uint32_t percent) {
  return random() % 100 < percent;
}

// One operation that all ranks call, in this order.
struct Item {
  enum class Kind : std::uint8_t { dispatch, cached, combine } kind;
  std::uint32_t handle;  // a number of the script
  bool last;             // use of the handle: it is released after the call
};

std::vector<Item> make_script(Random& random, std::size_t length) {
  std::vector<Item> script;
  std::vector<std::uint32_t> live;
  std::uint32_t next = 0;
  while (script.size() < length) {
    const bool fresh = live.empty() || (live.size() < kMostLive && chance(random, 30));
    if (fresh) live.push_back(next++);
    const std::size_t at = fresh ? live.size() - 1 : random() % live.size();
    const auto kind = fresh ? Item::Kind::dispatch : chance(random, 30) ? Item::Kind::cached : Item::Kind::combine;
    const bool last = chance(random, 25);
    script.push_back({kind, live[at], last});
    if (last) live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return script;
}

float value_of(std::size_t item, std::uint32_t rank, std::uint32_t token) {
  return static_cast<float>(item * 100 + rank * 10 + token + 1);
}

// One rank's way through a script.
class Player {
 public:
  Player(const Group& group, std::uint32_t ranks, std::uint32_t rank, std::uint64_t seed)
      : group_(group.get()), ranks_(ranks), rank_(rank), random_(seed) {
    // Tokens go to the experts 0 and 2 of four.
    const std::uint32_t each = kSmallExperts / ranks;
    for (const std::uint32_t expert : {0U, 2U}) experts_ += expert / each == rank ? 1 : 0;
    rows_ = experts_ * ranks * kSmallTokens;
  }

  void play(const std::vector<Item>& script) {
    for (std::size_t i = 0; i < script.size() && !testing::Test::HasFatalFailure(); ++i) {
      while (!pending_.empty() && chance(random_, 25)) settle();
      if (script[i].kind == Item::Kind::combine) {
        combine(i, script[i]);
      } else {
        dispatch(i, script[i]);
      }
      if (script[i].last) overdue_.push_back(script[i].handle);
      while (!overdue_.empty() && (overdue_.size() > kMostHandles - kMostLive - 1 || chance(random_, 50))) release();
    }
    while (!pending_.empty() && !testing::Test::HasFatalFailure()) settle();
    while (!overdue_.empty()) release();
    for (auto& [number, handle] : handles_) ASSERT_EQ(rh_handle_release(handle.name), RH_OK) << rh_last_error();
  }

 private:
  struct Live {
    rh_handle* name = nullptr;
    std::size_t item = 0;    // its dispatch
    std::size_t newest = 0;  // its newest one
    const void* rows = nullptr;
    std::shared_ptr<std::vector<float>> place;  // where they lie, unless in the arena
  };
  struct Pending {
    std::size_t item;
    Item what;
    rh_event* event = nullptr;
    bool planned = false;    // and not run
    bool too_small = false;  // its place
    std::unique_ptr<SmallCall> call = std::make_unique<SmallCall>();
    std::unique_ptr<rh_dispatch_result> result = std::make_unique<rh_dispatch_result>(make<rh_dispatch_result>());
    std::shared_ptr<std::vector<float>> place = nullptr;

    [[nodiscard]] bool waits_for_caller() const { return planned || too_small; }
  };

  [[nodiscard]] bool released(const Item& item) const { return !handles_.contains(item.handle); }
  void give_place(Pending& op) const {
    op.place = std::make_shared<std::vector<float>>(std::max<std::size_t>(rows_, 1) * kSmallHidden);
  }

  // What would wait for itself is not called: operations complete in order.
  void before_call(bool blocking) {
    const auto waits = [](const Pending& op) { return op.waits_for_caller(); };
    while ((blocking || pending_.size() >= kDepth) && std::any_of(pending_.begin(), pending_.end(), waits)) settle();
    while (pending_.size() > kDepth + 2) settle();
  }

  void dispatch(std::size_t i, const Item& item) {
    Pending op{.item = i, .what = item};
    for (std::uint32_t t = 0; t < kSmallTokens; ++t) {
      std::fill_n(op.call->x.begin() + t * kSmallHidden, kSmallHidden, value_of(i, rank_, t));
    }
    const bool cached = item.kind == Item::Kind::cached;
    if (cached) settle_dispatch_of(item.handle);
    const bool plan = !cached && chance(random_, 20);
    const bool blocking = plan || chance(random_, 40);
    before_call(blocking);
    rh_dispatch_args args = op.call->args;
    if (cached) args.cached = handles_[item.handle].name;
    rh_handle* name = nullptr;
    if (plan) {
      std::uint64_t rows = 0;
      ASSERT_EQ(rh_dispatch_plan(group_, &args, &rows, &name), RH_OK) << rh_last_error();
      ASSERT_EQ(rows, rows_);
      op.planned = true;
    } else {
      op.too_small = rows_ != 0 && chance(random_, 20);
      if (op.too_small || chance(random_, 50)) give_place(op);
      args.out = op.place == nullptr ? nullptr : op.place->data();
      args.out_rows = op.too_small ? rows_ - 1 : rows_;
      const rh_status got = rh_dispatch(group_, &args, op.result.get(), &name, blocking ? nullptr : &op.event);
      ASSERT_EQ(got, blocking && op.too_small ? RH_LIMIT_EXCEEDED : RH_OK) << rh_last_error();
      op.planned = blocking && op.too_small;
    }
    if (!cached) handles_[item.handle] = {name, i, i, nullptr, nullptr};
    handles_[item.handle].newest = i;
    pending_.push_back(std::move(op));
    if (blocking && !pending_.back().planned) settle_last();
  }

  void combine(std::size_t i, const Item& item) {
    Pending op{.item = i, .what = item};
    settle_dispatch_of(item.handle);
    const bool blocking = chance(random_, 40);
    before_call(blocking);
    const Live& handle = handles_[item.handle];
    op.place = handle.place;  // lives until the rows are taken
    auto args = make<rh_combine_args>();
    args.handle = handle.name;
    args.rows = handle.rows;
    args.row_count = rows_;
    args.type = RH_FP32;
    args.wire_type = RH_FP32;
    args.y = op.call->y.data();
    op.item = handle.item;  // whose values come back
    ASSERT_EQ(rh_combine(group_, &args, blocking ? nullptr : &op.event), RH_OK) << rh_last_error();
    pending_.push_back(std::move(op));
    if (blocking) settle_last();
  }

  // The handle's dispatch, and what was called before it, is complete.
  void settle_dispatch_of(std::uint32_t handle) {
    const auto is_it = [&](const Pending& op) {
      return op.what.kind == Item::Kind::dispatch && op.what.handle == handle;
    };
    while (std::any_of(pending_.begin(), pending_.end(), is_it)) settle();
  }

  void settle() {
    Pending op = std::move(pending_.front());
    pending_.pop_front();
    finish(op);
  }
  // A blocking call: it is over.
  void settle_last() {
    Pending op = std::move(pending_.back());
    pending_.pop_back();
    check(op);
  }

  rh_status wait(rh_event* event) {
    if (chance(random_, 50)) return rh_event_wait(event, 60'000);
    rh_status status = RH_IN_PROGRESS;
    while ((status = rh_event_test(event)) == RH_IN_PROGRESS) std::this_thread::yield();
    return status;
  }

  void finish(Pending& op) {
    if (op.event != nullptr) {
      const rh_status got = wait(op.event);
      ASSERT_EQ(got, op.too_small ? RH_LIMIT_EXCEEDED : RH_OK) << rh_last_error();
      op.planned = op.too_small;
    }
    if (op.planned) {
      if (released(op.what)) return;  // its rows are dropped
      op.place.reset();
      if (chance(random_, 50)) give_place(op);
      rh_event* event = nullptr;
      const bool blocking = chance(random_, 50);
      void* const out = op.place == nullptr ? nullptr : op.place->data();
      ASSERT_EQ(rh_dispatch_run(group_, handles_[op.what.handle].name, out, rows_, op.result.get(),
                                blocking ? nullptr : &event),
                RH_OK)
          << rh_last_error();
      ASSERT_EQ(blocking ? RH_OK : wait(event), RH_OK) << rh_last_error();
    }
    check(op);
  }

  void check(const Pending& op) {
    if (op.what.kind == Item::Kind::combine) {
      for (std::size_t e = 0; e < op.call->y.size(); ++e) {
        const auto token = static_cast<std::uint32_t>(e / kSmallHidden);
        ASSERT_EQ(op.call->y[e], 2 * value_of(op.item, rank_, token)) << "item " << op.item << " token " << token;
      }
      return;
    }
    const bool alive = !released(op.what);
    const float* const rows = op.place != nullptr ? op.place->data()
                              : alive             ? static_cast<const float*>(op.result->rows)
                                                  : nullptr;
    if (alive) {
      ASSERT_EQ(op.result->row_count, rows_);
      ASSERT_TRUE(rows_ == 0 || op.result->rows == rows);
    }
    // What a cached dispatch gave in the arena is gone when the next one of the handle completes.
    const bool replaced = op.what.kind == Item::Kind::cached && op.place == nullptr &&
                          (!alive || handles_[op.what.handle].newest != op.item);
    if (rows != nullptr && !replaced) expect_rows(op.item, rows);
    if (alive && op.what.kind == Item::Kind::dispatch) {
      handles_[op.what.handle].rows = op.result->rows;
      handles_[op.what.handle].place = op.place;
    }
  }

  // By expert, then source, then token.
  void expect_rows(std::size_t item, const float* rows) const {
    for (std::uint32_t expert = 0; expert < experts_; ++expert) {
      for (std::uint32_t source = 0; source < ranks_; ++source) {
        for (std::uint32_t token = 0; token < kSmallTokens; ++token) {
          for (std::uint32_t e = 0; e < kSmallHidden; ++e, ++rows) {
            ASSERT_EQ(*rows, value_of(item, source, token)) << "item " << item << " source " << source;
          }
        }
      }
    }
  }

  void release() {
    const auto found = handles_.find(overdue_.front());
    overdue_.pop_front();
    ASSERT_EQ(rh_handle_release(found->second.name), RH_OK) << rh_last_error();
    handles_.erase(found);
  }

  rh_group* group_;
  std::uint32_t ranks_;
  std::uint32_t rank_;
  Random random_;
  std::uint32_t experts_ = 0;
  std::uint32_t rows_ = 0;
  std::map<std::uint32_t, Live> handles_;
  std::deque<std::uint32_t> overdue_;  // handles to be released
  std::deque<Pending> pending_;        // oldest first
};

class Sequences : public Refused {};

TEST_P(Sequences, OfLegalCalls) {
  const std::uint64_t first = seed(1);
  for (std::uint64_t s = first; s < first + rounds(60, 5000) && !HasFailure(); ++s) {
    const std::uint32_t ranks = s % 2 == 0 ? 2 : 4;
    Random random(s);
    const std::vector<Item> script = make_script(random, 40);
    cluster_.run(in_turns(ranks, cluster_.hosts()),
                 [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
                   auto config = small_config(ranks, rank);
                   config.depth = kDepth;
                   config.max_handles = kMostHandles;
                   const Group group(session, id, config);
                   Player(group, ranks, rank, s * 64 + rank).play(script);
                   // Who leaves early ends the group for those who are not through.
                   EXPECT_EQ(rh_group_status(group.get()), RH_OK) << rh_last_error();
                   SmallCall call;
                   group.dispatch(call.args);
                 });
    ASSERT_FALSE(HasFailure()) << "RAILHEAD_SEED=" << s;
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, Sequences, refusal_hosts(), refusal_name);

}  // namespace
}  // namespace railhead::test
