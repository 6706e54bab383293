#include "tools/ep-bench/stats.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace railhead::bench {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> values(samples.begin(), samples.end());
  std::sort(values.begin(), values.end());
  return values;
}

// How many of the smallest samples may be skipped so that the next one still lies below the median with the wanted
// confidence. Each independent sample falls below the median with probability 1/2, so the number that does is
// Binomial(n, 1/2), and the k-th smallest exceeds the median with probability P(fewer than k fall below).
// Why not a bootstrap: this bound is exact for every distribution, needs no random numbers (the same samples give the
// same figure), and for a median the bootstrap only approaches these same order statistics.
// Returns 0 where not even the smallest sample will do.
std::size_t order_of_bound(std::size_t count, double confidence) {
  const double n = static_cast<double>(count);
  double tail = 0;  // P(at most `order` - 1 fall below the median)
  std::size_t order = 0;
  while (order < count) {
    const double k = static_cast<double>(order);
    const double log_choose = std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
    tail += std::exp(log_choose - n * std::log(2.0));
    if (tail > 1 - confidence) break;
    ++order;
  }
  return order;
}

Result<std::size_t> checked_order(std::size_t count, double confidence) {
  if (!(confidence > 0.5 && confidence < 1)) {
    return fail(Code::invalid_argument, "confidence " + std::to_string(confidence) + " is not between 0.5 and 1");
  }
  const std::size_t order = order_of_bound(count, confidence);
  if (order == 0) {
    return fail(Code::invalid_argument, std::to_string(count) + " samples are too few for a bound of the median with " +
                                            "confidence " + std::to_string(confidence) + ": measure more pairs");
  }
  return order;
}

}  // namespace

double percentile(std::span<const double> samples, double percent) {
  if (samples.empty()) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values = sorted(samples);
  const double place = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::span<const double> samples) {
  return percentile(samples, 50);
}

Result<double> lower_median_bound(std::span<const double> samples, double confidence) {
  const auto order = checked_order(samples.size(), confidence);
  if (!order) return fail(order.error());
  return sorted(samples)[*order - 1];
}

Result<double> upper_median_bound(std::span<const double> samples, double confidence) {
  const auto order = checked_order(samples.size(), confidence);
  if (!order) return fail(order.error());
  return sorted(samples)[samples.size() - *order];
}

Status PairedSamples::add(double product, double peer) {
  const auto usable = [](double value) { return std::isfinite(value) && value > 0; };
  if (!usable(product) || !usable(peer)) {
    return Status(Code::invalid_argument, "a pair of samples must be positive and finite, got product " +
                                              std::to_string(product) + " and peer " + std::to_string(peer));
  }
  product_.push_back(product);
  peer_.push_back(peer);
  return {};
}

std::vector<double> PairedSamples::ratios() const {
  std::vector<double> out(product_.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = peer_[i] / product_[i];
  return out;
}

Result<RatioSummary> PairedSamples::summary() const {
  const std::vector<double> all = ratios();
  const auto lower = lower_median_bound(all);
  if (!lower) return fail(lower.error());
  const auto upper = upper_median_bound(all);
  if (!upper) return fail(upper.error());
  return RatioSummary{.pairs = all.size(),
                      .lower = *lower,
                      .median = median(all),
                      .upper = *upper,
                      .smallest = percentile(all, 0),
                      .largest = percentile(all, 100),
                      .product_median = median(product_),
                      .peer_median = median(peer_)};
}

}  // namespace railhead::bench
