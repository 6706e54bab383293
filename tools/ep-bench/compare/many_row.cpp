// What many ranks and several daemons on few cores cost: the time per byte of 12 ranks under 3 daemons, less what the
// wire takes for their rail bytes, over the time per byte of 4 ranks under one daemon.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tools/ep-bench/compare/peers.hpp"
#include "tools/ep-bench/compare/product.hpp"
#include "tools/ep-bench/compare/rows.hpp"
#include "tools/ep-bench/compare/wire_rank.hpp"
#include "tools/ep-bench/stats.hpp"

namespace railhead::bench {
namespace {

constexpr int kWireRuns = 7;  // of a pair: one run differs from the next by a fifth

// Nanoseconds that a bare loop of writes takes for as many bytes, in runs as long as a round.
Result<double> wire_ns(const Workload& work, double bytes) {
  const auto megabytes = static_cast<std::uint32_t>(std::max(1L, std::lround(bytes / 1e6)));
  std::vector<double> times;
  for (int i = 0; i < kWireRuns; ++i) {
    const auto speed = bare_writes_gb_s(wire_slot_bytes(work), megabytes);
    if (!speed) return fail(speed.error());
    times.push_back(bytes / *speed);
  }
  return median(times);
}

Status measure_pairs(const CompareRun& run, PairedSamples& samples) {
  ProductShape shape;
  shape.net = NetKind::loopback;  // as the bare loop
  shape.rounds = 9;
  auto few = Product::start(shape);
  if (!few) return few.error();
  shape.nodes = 3;
  auto many = Product::start(shape);
  if (!many) return many.error();
  for (std::uint32_t pair = 0; pair < run.pairs; ++pair) {
    run.progress("many_ranks", pair, run.pairs);
    const auto one = few->sample();
    if (!one) return one.error();
    const auto three = many->sample();
    if (!three) return three.error();
    const auto wire = wire_ns(many->work(), three->rail_bytes);
    if (!wire) return wire.error();
    const double beyond = std::max(three->ms * 1e6 - *wire, 1.0);
    if (Status added = samples.add(beyond / three->row_bytes, one->ms * 1e6 / one->row_bytes); !added.ok())
      return added;
  }
  return {};
}

}  // namespace

void measure_many(const CompareRun& run, Figures& figures) {
  if (!run.wanted("many_ranks")) return;
  PairedSamples samples;
  const Status status = measure_pairs(run, samples);
  figures.emplace("many_ranks", status.ok() ? time_ratio(samples, "4 ranks", "ns/B") : fail(status));
}

}  // namespace railhead::bench
