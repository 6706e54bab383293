// A pairwise cover: for every two factors, every pair of their levels stands in at least one row. Greedy and from a
// seed: the same seed gives the same rows on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "tests/reference/dice.hpp"

namespace railhead::test {

using reference::Dice;

// A level per factor; kUnset while a row is being made.
using Levels = std::vector<std::size_t>;
inline constexpr std::size_t kUnset = SIZE_MAX;

class PairwiseCover {
 public:
  // `possible`: whether a row in which some levels are still unset can be completed.
  PairwiseCover(std::vector<std::size_t> counts, std::uint64_t seed, std::function<bool(const Levels&)> possible)
      : counts_(std::move(counts)), possible_(std::move(possible)), dice_(seed) {
    std::size_t offset = 0;
    for (const std::size_t count : counts_) {
      first_.push_back(offset);
      offset += count;
    }
    all_ = offset;
    open_.assign(all_ * all_, false);
    find_pairs();
    while (const auto* const pair = next_open()) add_row(*pair);
  }

  [[nodiscard]] const std::vector<Levels>& rows() const { return rows_; }
  [[nodiscard]] std::size_t pairs() const { return pairs_.size(); }
  // Pairs that no possible row holds.
  [[nodiscard]] std::size_t impossible() const { return impossible_; }

 private:
  struct Pair {
    std::size_t factor_a, level_a, factor_b, level_b;
  };

  std::vector<bool>::reference open(std::size_t fa, std::size_t la, std::size_t fb, std::size_t lb) {
    return open_[(first_[fa] + la) * all_ + first_[fb] + lb];
  }

  void find_pairs() {
    for (std::size_t a = 0; a < counts_.size(); ++a) {
      for (std::size_t b = a + 1; b < counts_.size(); ++b) {
        for (std::size_t la = 0; la < counts_[a]; ++la) {
          for (std::size_t lb = 0; lb < counts_[b]; ++lb) {
            Levels row(counts_.size(), kUnset);
            row[a] = la;
            row[b] = lb;
            if (!possible_(row)) {
              ++impossible_;
              continue;
            }
            pairs_.push_back({a, la, b, lb});
            open(a, la, b, lb) = open(b, lb, a, la) = true;
          }
        }
      }
    }
    dice_.shuffle(pairs_);
  }

  const Pair* next_open() {
    for (; next_ < pairs_.size(); ++next_) {
      const Pair& p = pairs_[next_];
      if (open(p.factor_a, p.level_a, p.factor_b, p.level_b)) return &p;
    }
    return nullptr;
  }

  // Open pairs between this level and the levels that are set.
  std::size_t gain(const Levels& row, std::size_t factor, std::size_t level) {
    std::size_t sum = 0;
    for (std::size_t f = 0; f < row.size(); ++f) {
      if (row[f] != kUnset && f != factor && open(factor, level, f, row[f])) ++sum;
    }
    return sum;
  }

  std::size_t best_level(Levels row, std::size_t factor) {
    const std::size_t start = dice_.below(counts_[factor]);
    std::size_t best = kUnset;
    std::size_t best_gain = 0;
    for (std::size_t i = 0; i < counts_[factor]; ++i) {
      const std::size_t level = (start + i) % counts_[factor];
      row[factor] = level;
      if (!possible_(row)) continue;
      const std::size_t gained = gain(row, factor, level);
      if (best != kUnset && gained <= best_gain) continue;
      best = level;
      best_gain = gained;
    }
    return best;
  }

  void add_row(const Pair& pair) {
    Levels row(counts_.size(), kUnset);
    row[pair.factor_a] = pair.level_a;
    row[pair.factor_b] = pair.level_b;
    std::vector<std::size_t> rest;
    for (std::size_t f = 0; f < counts_.size(); ++f) {
      if (row[f] == kUnset) rest.push_back(f);
    }
    dice_.shuffle(rest);
    for (const std::size_t f : rest) row[f] = best_level(row, f);
    for (std::size_t a = 0; a < row.size(); ++a) {
      for (std::size_t b = 0; b < row.size(); ++b) {
        if (a != b) open(a, row[a], b, row[b]) = false;
      }
    }
    rows_.push_back(std::move(row));
  }

  std::vector<std::size_t> counts_;
  std::function<bool(const Levels&)> possible_;
  Dice dice_;
  std::vector<std::size_t> first_;  // of a factor's levels in the numbering of all levels
  std::size_t all_ = 0;
  std::vector<bool> open_;  // all_ x all_, symmetric: a pair that no row holds yet
  std::vector<Pair> pairs_;
  std::size_t next_ = 0;
  std::size_t impossible_ = 0;
  std::vector<Levels> rows_;
};

}  // namespace railhead::test
