// Rounds of dispatch and combine in which every row says what it is: a stale, foreign or lost row shows at once, and
// the check costs little enough for 10,000 rounds. Ranks delay at random and choose the form of each call for
// themselves.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "railhead/railhead.hpp"
#include "tests/conformance/pairwise.hpp"

namespace railhead::test {

// The same on every rank of a job.
struct StampedJob {
  std::uint32_t ranks = 1;
  std::uint32_t job = 1;  // stands in every row
  rh_layout layout = RH_LAYOUT_RANK;
  std::uint32_t depth = 2;
  std::uint32_t topk = 3;
  std::uint32_t channels = 0;  // 0: the library's
  std::uint32_t ring_slots = 2;
  std::uint32_t chunk_bytes = 0;  // 0: the library's; 1: chunks of one record
  std::uint32_t most_tokens = 3;  // of a rank and round, below 64; 0 comes up, too
  std::uint64_t seed = 1;

  [[nodiscard]] std::uint32_t experts() const { return 2 * ranks; }
  [[nodiscard]] std::uint32_t tokens(std::uint32_t round, std::uint32_t rank) const;
  // -1 or an expert; the same on every rank that asks.
  [[nodiscard]] std::int64_t id(std::uint32_t round, std::uint32_t rank, std::uint32_t token, std::uint32_t slot) const;
  [[nodiscard]] rh_group_config config(std::uint32_t rank) const;
};

class StampedRank {
 public:
  StampedRank(const Group& group, std::uint32_t rank, const StampedJob& job);
  ~StampedRank();
  StampedRank(const StampedRank&) = delete;
  StampedRank& operator=(const StampedRank&) = delete;

  // Rounds first .. first + count - 1, and nothing left in flight. Throws std::runtime_error at the first wrong row.
  void run(std::uint32_t first, std::uint32_t count);

 private:
  struct Stamp {
    std::uint32_t round, job, rank, token;
    bool operator==(const Stamp&) const = default;
  };
  struct Flight;

  void start_dispatch(std::uint32_t round);
  void finish_dispatch(Flight& f);
  void dispatch_again(Flight& f);
  void start_combine(Flight& f);
  void finish_combine(Flight& f);
  void retire(std::size_t keep);
  void check_rows(const Flight& f, const rh_dispatch_result& got, std::uint32_t stamped_round) const;
  void wait(Event& event);
  void delay();
  [[nodiscard]] std::vector<Stamp> stamps(std::uint32_t stamped_round, std::uint32_t tokens) const;
  [[nodiscard]] std::vector<float> units_of(std::uint32_t round, std::uint32_t rank, std::uint32_t token) const;

  const Group& group_;
  std::uint32_t rank_;
  StampedJob job_;
  Dice dice_;
  std::deque<std::unique_ptr<Flight>> flights_;  // oldest first
};

}  // namespace railhead::test
