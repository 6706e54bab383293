// Statistics of measured samples, and pairs of samples taken in turns. No threads, no allocation visible to the caller.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ipc/status.hpp"

namespace railhead::bench {

// The middle value; the mean of the two middle ones for an even count. NaN for no sample.
double median(std::span<const double> samples);

// Percentile in [0, 100] with linear interpolation between the two nearest order statistics. NaN for no sample.
double percentile(std::span<const double> samples, double percent);

// A bound that the true median of the distribution passes with the given confidence (one-sided), whatever the
// distribution: an order statistic of the sample, see stats.cpp. invalid_argument where the sample is too small for the
// confidence (95 % needs 5 samples).
Result<double> lower_median_bound(std::span<const double> samples, double confidence = 0.95);
Result<double> upper_median_bound(std::span<const double> samples, double confidence = 0.95);

// What a comparison reports. `ratio` figures are peer time / product time: above 1 the product is faster.
struct RatioSummary {
  std::size_t pairs = 0;
  double lower = 0;  // lower 95 % bound of the median ratio: the figure that is held against a budget
  double median = 0;
  double upper = 0;  // upper 95 % bound, for figures where lower is better
  double smallest = 0;
  double largest = 0;
  double product_median = 0;  // unit of the samples
  double peer_median = 0;
};

// Samples of the product and of its peer, the i-th of one measured next to the i-th of the other.
class PairedSamples {
 public:
  // Both positive and finite, else invalid_argument and nothing is kept.
  Status add(double product, double peer);

  [[nodiscard]] std::size_t size() const noexcept { return product_.size(); }
  [[nodiscard]] const std::vector<double>& product() const noexcept { return product_; }
  [[nodiscard]] const std::vector<double>& peer() const noexcept { return peer_; }
  [[nodiscard]] std::vector<double> ratios() const;
  // Fails as lower_median_bound does.
  [[nodiscard]] Result<RatioSummary> summary() const;

 private:
  std::vector<double> product_;
  std::vector<double> peer_;
};

// Measures in turns (product, peer, product, peer, ...), so that drift of the machine meets both sides alike. Each
// callable returns Result<double>, a time. Stops at the first error, which names the pair and the side.
template <class Product, class Peer>
Result<PairedSamples> interleave(std::size_t pairs, Product&& product, Peer&& peer) {
  PairedSamples samples;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const auto blame = [pair](const char* side, const Status& why) {
      return fail(why.code(), "pair " + std::to_string(pair) + ", " + side + ": " + why.message());
    };
    const Result<double> ours = product();
    if (!ours) return blame("product", ours.error());
    const Result<double> theirs = peer();
    if (!theirs) return blame("peer", theirs.error());
    if (Status added = samples.add(*ours, *theirs); !added.ok()) return blame("sample", added);
  }
  return samples;
}

}  // namespace railhead::bench
