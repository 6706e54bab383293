#include "tools/ep-bench/compare/budget.hpp"

#include <algorithm>
#include <cstdio>

namespace railhead::bench {
namespace {

constexpr Budget kBudgets[] = {
    {"node_rank_t128", "a node, 4 ranks, T 128, layout rank / MPI dedup", "x", 2, Better::higher},
    {"node_rank_t512", "a node, 4 ranks, T 512, layout rank / MPI dedup", "x", 2, Better::higher},
    {"node_rank_t2048", "a node, 4 ranks, T 2048, layout rank / MPI dedup", "x", 1.8, Better::higher},
    {"node2_rank_t512", "a node, 2 ranks, T 512, layout rank / MPI dedup", "x", 1.6, Better::higher},
    {"node_expert_t512", "a node, 4 ranks, T 512, layout expert / MPI expert", "x", 5, Better::higher},
    {"bound_t128", "a node, T 128, layout rank / direct-store bound", "x", 0.8, Better::higher},
    {"bound_t512", "a node, T 512, layout rank / direct-store bound", "x", 0.9, Better::higher},
    {"bound_t2048", "a node, T 2048, layout rank / direct-store bound", "x", 0.9, Better::higher},
    {"two_nodes_t512", "2 nodes x 4 ranks, T 512, layout rank / MPI dedup", "x", 2.5, Better::higher},
    {"two_nodes1_t512", "2 nodes x 1 rank, T 512, layout rank / MPI dedup", "x", 1.2, Better::higher},
    {"many_ranks", "12 ranks, 3 daemons, beyond the wire / 4 ranks, 1 daemon, time per byte", "x", 2, Better::lower},
    {"wire", "daemon to daemon, filled slots / bare libfabric writes", "x", 0.9, Better::higher},
    {"ring_mops", "descriptors through one ring, two cores", "M/s", 10, Better::higher},
    {"pingpong", "one-token dispatch + combine / bare ping-pong", "x", 20, Better::lower},
    {"death_ms", "kill of a rank to the error on all ranks, p99", "ms", 10, Better::lower},
    {"regroup_ms", "a new group over warm daemons, 2 nodes x 4 ranks", "ms", 100, Better::lower},
    {"idle_cpu", "a daemon with 8 idle sessions, share of a core", "", 0.005, Better::lower},
};

std::string both(const std::string& peer_name, const RatioSummary& s, const std::string& unit) {
  char text[160];
  std::snprintf(text, sizeof(text), "%.3f %s, %s %.3f %s", s.product_median, unit.c_str(), peer_name.c_str(),
                s.peer_median, unit.c_str());
  return text;
}

nlohmann::json raw_json(const RatioSummary& s, const PairedSamples& samples, const std::string& peer_name,
                        const std::string& unit) {
  return {{"peer", peer_name},
          {"unit", unit},
          {"pairs", s.pairs},
          {"lower", s.lower},
          {"median", s.median},
          {"upper", s.upper},
          {"product_median", s.product_median},
          {"peer_median", s.peer_median},
          {"product", samples.product()},
          {"peer_samples", samples.peer()}};
}

}  // namespace

std::span<const Budget> budgets() {
  return kBudgets;
}

const Budget* find_budget(std::string_view key) {
  const auto found =
      std::find_if(std::begin(kBudgets), std::end(kBudgets), [&](const Budget& b) { return b.key == key; });
  return found == std::end(kBudgets) ? nullptr : found;
}

bool meets(const Budget& budget, double value) {
  return budget.better == Better::higher ? value >= budget.limit : value <= budget.limit;
}

Result<Figure> speed_ratio(const PairedSamples& samples, const std::string& peer_name, const std::string& unit) {
  const auto s = samples.summary();
  if (!s) return fail(s.error());
  return Figure{s->lower, raw_json(*s, samples, peer_name, unit), both(peer_name, *s, unit)};
}

Result<Figure> time_ratio(const PairedSamples& samples, const std::string& peer_name, const std::string& unit) {
  auto figure = speed_ratio(samples, peer_name, unit);
  if (!figure) return figure;
  // The bounds of 1 / ratio: the order turns round.
  nlohmann::json& raw = figure->raw;
  const double lower = raw["lower"], upper = raw["upper"], median = raw["median"];
  raw["lower"] = 1 / upper;
  raw["upper"] = 1 / lower;
  raw["median"] = 1 / median;
  figure->value = 1 / lower;
  return figure;
}

Result<Figure> plain_figure(const std::vector<double>& samples, Better better, const std::string& unit) {
  const auto lower = lower_median_bound(samples);
  if (!lower) return fail(lower.error());
  const auto upper = upper_median_bound(samples);
  if (!upper) return fail(upper.error());
  const double middle = median(samples);
  char text[80];
  std::snprintf(text, sizeof(text), "median %.3f %s", middle, unit.c_str());
  return Figure{better == Better::higher ? *lower : *upper,
                {{"unit", unit}, {"median", middle}, {"lower", *lower}, {"upper", *upper}, {"samples", samples}},
                text};
}

}  // namespace railhead::bench
