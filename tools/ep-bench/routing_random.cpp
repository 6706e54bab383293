// uniform and zipf: random routing.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "tools/ep-bench/routing_hash.hpp"
#include "tools/ep-bench/routing_sources.hpp"

namespace railhead::bench {
namespace {

class UniformRouting final : public RoutingSource {
 public:
  explicit UniformRouting(const RoutingOptions& options) : RoutingSource(options) {}

 private:
  void fill(std::uint32_t rank, std::uint64_t round, Routing& out) const override {
    std::vector<std::int64_t> deck(experts());
    std::iota(deck.begin(), deck.end(), 0);
    for (std::uint32_t token = 0; token < out.tokens; ++token) {
      const std::uint64_t key = hash_words({options().seed, rank, round, token});
      HashRandom random(key);
      const std::size_t first = std::size_t{token} * top_k();
      // The first K cards of a shuffle; a shuffle of an already shuffled deck is as good as of a fresh one.
      for (std::uint32_t slot = 0; slot < top_k(); ++slot) {
        std::swap(deck[slot], deck[slot + random.below(experts() - slot)]);
        out.ids[first + slot] = deck[slot];
      }
      hashed_weights(key, std::span(out.weights).subspan(first, top_k()));
    }
  }
};

class ZipfRouting final : public RoutingSource {
 public:
  ZipfRouting(const RoutingOptions& options, double exponent) : RoutingSource(options), popularity_(options.experts) {
    // Popular experts are spread over the ids by the seed: in id order they would all sit on rank 0.
    std::vector<std::uint32_t> order(options.experts);
    std::iota(order.begin(), order.end(), 0u);
    HashRandom random(hash_words({options.seed, 0x7a697066u}));
    for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
    for (std::size_t n = 0; n < order.size(); ++n) {
      popularity_[order[n]] = std::pow(static_cast<double>(n + 1), -exponent);
    }
  }

 private:
  // K draws without replacement, each proportional to popularity: the K earliest of independent exponential arrivals
  // whose rates are the popularities have just that distribution.
  void fill(std::uint32_t rank, std::uint64_t round, Routing& out) const override {
    std::vector<std::pair<double, std::int64_t>> arrivals(experts());
    for (std::uint32_t token = 0; token < out.tokens; ++token) {
      const std::uint64_t key = hash_words({options().seed, rank, round, token});
      HashRandom random(key);
      for (std::uint32_t expert = 0; expert < experts(); ++expert) {
        arrivals[expert] = {-std::log(random.next_unit()) / popularity_[expert], expert};
      }
      std::partial_sort(arrivals.begin(), arrivals.begin() + top_k(), arrivals.end());
      const std::size_t first = std::size_t{token} * top_k();
      for (std::uint32_t slot = 0; slot < top_k(); ++slot) out.ids[first + slot] = arrivals[slot].second;
      hashed_weights(key, std::span(out.weights).subspan(first, top_k()));
    }
  }

  std::vector<double> popularity_;
};

}  // namespace

RoutingResult open_uniform(const RoutingOptions& options) {
  if (Status shape = check_shape(options); !shape.ok()) return fail(std::move(shape));
  return std::make_unique<UniformRouting>(options);
}

RoutingResult open_zipf(std::string_view exponent, const RoutingOptions& options) {
  if (Status shape = check_shape(options); !shape.ok()) return fail(std::move(shape));
  constexpr double kSteepest = 20;  // beyond, popularities of 2^20 experts leave the range of a double
  double value = 0;
  const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
  if (error != std::errc{} || end != exponent.data() + exponent.size() || !(value >= 0 && value <= kSteepest)) {
    return fail(Code::invalid_argument, "routing 'zipf:" + std::string(exponent) + "': the exponent must be a number " +
                                            "from 0 to " + std::to_string(static_cast<int>(kSteepest)));
  }
  return std::make_unique<ZipfRouting>(options, value);
}

}  // namespace railhead::bench
