#include "tests/conformance/stamped.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace railhead::test {
namespace {

constexpr std::uint32_t kHidden = 16;  // bytes of a stamp; elements of a combined row
constexpr std::uint32_t kAgain = 0x80000000U;
constexpr std::uint32_t kCachedEvery = 5;
constexpr std::size_t kMostKept = 6;  // flights whose handle is still alive

[[noreturn]] void wrong(std::uint32_t rank, std::uint32_t round, const std::string& what) {
  throw std::runtime_error("rank " + std::to_string(rank) + ", round " + std::to_string(round) + ": " + what);
}

// What an expert (or a rank, in layout rank) returns for a row; sums of these are exact in fp32.
float output(std::uint32_t round, float unit, std::uint32_t rank, std::uint32_t element) {
  return static_cast<float>(round % 512) + 16 * unit + static_cast<float>(rank) + 0.5F * static_cast<float>(element);
}

}  // namespace

std::uint32_t StampedJob::tokens(std::uint32_t round, std::uint32_t rank) const {
  return static_cast<std::uint32_t>(Dice(seed ^ (round * 7919ULL + rank)).below(most_tokens + 1));
}

std::int64_t StampedJob::id(std::uint32_t round, std::uint32_t rank, std::uint32_t token, std::uint32_t slot) const {
  Dice dice(seed + ((round * 64ULL + rank) * 64 + token) * 64 + slot);
  return static_cast<std::int64_t>(dice.below(experts() + 1)) - 1;
}

rh_group_config StampedJob::config(std::uint32_t rank) const {
  auto config = make<rh_group_config>();
  config.ranks = ranks;
  config.rank = rank;
  config.experts = experts();
  config.hidden = kHidden;
  config.topk = topk;
  config.depth = depth;
  config.channels = channels;
  config.ring_slots = ring_slots;
  config.chunk_bytes = chunk_bytes;
  config.op_timeout_ms = 60'000;
  config.join_timeout_ms = 60'000;
  return config;
}

struct StampedRank::Flight {
  std::uint32_t round = 0;
  std::vector<Stamp> x;
  std::vector<std::int64_t> ids;
  rh_dispatch_result result{};
  Handle handle;
  Event dispatched;
  std::vector<Stamp> place;  // of the planned form
  bool received = false;
  std::vector<float> rows, y;
  Event combined;
  bool combining = false;
  bool done = false;
};

StampedRank::StampedRank(const Group& group, std::uint32_t rank, const StampedJob& job)
    : group_(group), rank_(rank), job_(job), dice_(job.seed * 31 + rank) {}

StampedRank::~StampedRank() = default;

void StampedRank::run(std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t round = first; round < first + count; ++round) {
    delay();
    start_dispatch(round);
    if (flights_.size() >= 2) {
      Flight& before = *flights_[flights_.size() - 2];
      finish_dispatch(before);
      if (round % kCachedEvery == 0) dispatch_again(before);
      delay();
      start_combine(before);
    }
    retire(1 + dice_.below(kMostKept));
  }
  if (!flights_.empty()) {
    finish_dispatch(*flights_.back());
    start_combine(*flights_.back());
  }
  retire(0);
}

void StampedRank::start_dispatch(std::uint32_t round) {
  auto flight = std::make_unique<Flight>();
  Flight& f = *flight;
  f.round = round;
  const std::uint32_t tokens = job_.tokens(round, rank_);
  f.x = stamps(round, tokens);
  for (std::uint32_t t = 0; t < tokens; ++t) {
    for (std::uint32_t s = 0; s < job_.topk; ++s) f.ids.push_back(job_.id(round, rank_, t, s));
  }
  rh_dispatch_args args{};
  args.x = f.x.data();
  args.tokens = tokens;
  args.ids = f.ids.data();
  args.layout = job_.layout;
  switch (dice_.below(4)) {
    case 0: {
      auto [result, handle] = group_.dispatch(args);
      f.result = result;
      f.handle = std::move(handle);
      break;
    }
    case 1: {
      auto [rows, handle] = group_.plan(args);
      delay();
      f.place.resize(rows);
      f.result = group_.run(handle, rows == 0 ? nullptr : f.place.data(), rows);
      f.handle = std::move(handle);
      break;
    }
    default: {
      auto [event, handle] = group_.dispatch_async(args, f.result);
      f.dispatched = std::move(event);
      f.handle = std::move(handle);
      break;
    }
  }
  flights_.push_back(std::move(flight));
}

void StampedRank::finish_dispatch(Flight& f) {
  if (f.received) return;
  wait(f.dispatched);
  f.received = true;
  check_rows(f, f.result, f.round);
}

// The routing of a handle once more, with other rows.
void StampedRank::dispatch_again(Flight& f) {
  const std::vector<Stamp> x = stamps(f.round | kAgain, job_.tokens(f.round, rank_));
  rh_dispatch_args args{};
  args.x = x.data();
  args.cached = f.handle.get();
  if (dice_.chance(500)) {
    check_rows(f, group_.dispatch(args).first, f.round | kAgain);
    return;
  }
  rh_dispatch_result result{};
  auto event = group_.dispatch_async(args, result).first;
  wait(event);
  check_rows(f, result, f.round | kAgain);
}

void StampedRank::start_combine(Flight& f) {
  f.rows.assign(f.result.row_count * kHidden, 0);
  for (std::uint64_t i = 0, expert = 0; i < f.result.row_count; ++i) {
    while (job_.layout == RH_LAYOUT_EXPERT && i >= static_cast<std::uint64_t>(f.result.expert_offsets64[expert + 1])) {
      ++expert;
    }
    const auto unit = static_cast<float>(job_.layout == RH_LAYOUT_EXPERT ? 2 * rank_ + expert : rank_);
    const auto source = static_cast<std::uint32_t>(f.result.row_rank[i]);
    for (std::uint32_t e = 0; e < kHidden; ++e) f.rows[i * kHidden + e] = output(f.round, unit, source, e);
  }
  f.y.assign(f.x.size() * kHidden, -1);
  rh_combine_args args{};
  args.handle = f.handle.get();
  args.rows = f.rows.data();
  args.row_count = f.result.row_count;
  args.type = RH_FP32;
  args.wire_type = RH_FP32;
  args.y = f.y.data();
  f.combining = true;
  if (dice_.chance(300)) {
    group_.combine(args);
    finish_combine(f);
  } else {
    f.combined = group_.combine_async(args);
  }
}

void StampedRank::finish_combine(Flight& f) {
  if (f.done) return;
  wait(f.combined);
  f.done = true;
  for (std::uint32_t t = 0; t < f.x.size(); ++t) {
    const std::vector<float> units = units_of(f.round, rank_, t);
    for (std::uint32_t e = 0; e < kHidden; ++e) {
      float want = 0;
      for (const float unit : units) want += output(f.round, unit, rank_, e);
      const float got = f.y[t * kHidden + e];
      if (got != want) {
        wrong(rank_, f.round,
              "y of token " + std::to_string(t) + ", element " + std::to_string(e) + " is " + std::to_string(got) +
                  ", expected " + std::to_string(want));
      }
    }
  }
}

// Ends the oldest flights until at most `keep` (and the one whose dispatch is in flight) are left.
void StampedRank::retire(std::size_t keep) {
  while (flights_.size() > keep && flights_.front()->combining) {
    finish_combine(*flights_.front());
    flights_.pop_front();
  }
}

void StampedRank::check_rows(const Flight& f, const rh_dispatch_result& got, std::uint32_t stamped_round) const {
  std::vector<Stamp> want;
  const bool by_rank = job_.layout == RH_LAYOUT_RANK;
  for (std::uint32_t expert = 2 * rank_; expert < 2 * rank_ + (by_rank ? 1 : 2); ++expert) {
    for (std::uint32_t r = 0; r < job_.ranks; ++r) {
      for (std::uint32_t t = 0; t < job_.tokens(f.round, r); ++t) {
        const std::vector<float> units = units_of(f.round, r, t);
        const auto unit = static_cast<float>(by_rank ? rank_ : expert);
        if (std::find(units.begin(), units.end(), unit) == units.end()) continue;
        want.push_back({stamped_round, job_.job, r, t});
      }
    }
  }
  if (got.row_count != want.size()) {
    wrong(rank_, f.round, std::to_string(got.row_count) + " rows, expected " + std::to_string(want.size()));
  }
  const auto* const rows = static_cast<const Stamp*>(got.rows);
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (rows[i] == want[i] && got.row_rank[i] == static_cast<std::int32_t>(want[i].rank)) continue;
    wrong(rank_, f.round,
          "row " + std::to_string(i) + " is of round " + std::to_string(rows[i].round) + ", job " +
              std::to_string(rows[i].job) + ", rank " + std::to_string(rows[i].rank) + ", token " +
              std::to_string(rows[i].token) + ", expected round " + std::to_string(want[i].round) + ", job " +
              std::to_string(want[i].job) + ", rank " + std::to_string(want[i].rank) + ", token " +
              std::to_string(want[i].token));
  }
}

// By waiting, by waiting in small pieces, or by polling.
void StampedRank::wait(Event& event) {
  switch (dice_.below(3)) {
    case 0: event.wait(); break;
    case 1:
      while (!event.wait_for(std::chrono::milliseconds(1))) {
      }
      break;
    default:
      for (int polls = 0; polls < 20; ++polls) {
        if (event.test()) return;
      }
      event.wait();
  }
}

// Mostly none; else a yield (one: beside busy processes each costs a time slice), or up to 300 us of work; rarely up to
// 20 ms away, as if another process had the core: the others run into every limit of depth and credits meanwhile.
void StampedRank::delay() {
  if (dice_.chance(2)) {
    std::this_thread::sleep_for(std::chrono::microseconds(dice_.below(20'000)));
    return;
  }
  const std::size_t what = dice_.below(24);
  if (what == 0) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(dice_.below(300));
    while (std::chrono::steady_clock::now() < end) {
    }
  } else if (what < 6) {
    std::this_thread::yield();
  }
}

std::vector<StampedRank::Stamp> StampedRank::stamps(std::uint32_t stamped_round, std::uint32_t tokens) const {
  std::vector<Stamp> out;
  for (std::uint32_t t = 0; t < tokens; ++t) out.push_back({stamped_round, job_.job, rank_, t});
  return out;
}

// The experts of a token, or its ranks in layout rank: one row each.
std::vector<float> StampedRank::units_of(std::uint32_t round, std::uint32_t rank, std::uint32_t token) const {
  std::set<float> units;
  for (std::uint32_t s = 0; s < job_.topk; ++s) {
    const std::int64_t id = job_.id(round, rank, token, s);
    if (id >= 0) units.insert(static_cast<float>(job_.layout == RH_LAYOUT_EXPERT ? id : id / 2));
  }
  return {units.begin(), units.end()};
}

}  // namespace railhead::test
