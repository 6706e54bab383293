// What the daemons add to the fabric: slots that were filled beforehand, from one daemon to another, beside a bare loop
// of writes of the same size. Both over loopback, the two busy threads of each side on a core of their own.
#include <algorithm>

#include "tools/ep-bench/compare/peers.hpp"
#include "tools/ep-bench/compare/rows.hpp"
#include "tools/ep-bench/compare/wire_rank.hpp"
#include "tools/ep-bench/launch/cluster.hpp"

namespace railhead::bench {
namespace {

constexpr std::uint32_t kMegabytes = 96;  // of one stream; a sample is the median of kStreams, in turns with the peer's
constexpr std::uint32_t kStreams = 3;
constexpr std::uint32_t kRings = 2;      // of rank 0: dispatch and combine, with the default of one channel
constexpr std::uint32_t kInFlight = 32;  // slots on both sides: 4 MB of the library's usual size

Workload wire_workload() {
  Workload work;
  work.domain_of_rank = {0, 1};
  work.tokens = {0, 0};
  work.hidden = 1024;
  work.experts = 2;
  work.top_k = 1;
  work.channels = 1;
  work.ring_slots = kInFlight / kRings;
  return work;
}

Result<double> stream_seconds(Cluster& cluster, std::uint32_t slots) {
  const auto answers = cluster.order({Verb::loop, 0, 0, slots, 0});
  if (!answers) return fail(answers.error());
  std::int64_t slowest = 0;
  for (const Answer& answer : *answers) slowest = std::max(slowest, answer.elapsed_ns);
  return static_cast<double>(slowest) / 1e9;
}

// Both sides' milliseconds for the same bytes.
Status measure_pair(Cluster& cluster, std::uint32_t slots, std::uint32_t chunk, PairedSamples& samples) {
  const double bytes = double{1} * slots * chunk;
  std::vector<double> ours;
  std::vector<double> bare;
  for (std::uint32_t i = 0; i < kStreams; ++i) {
    const auto seconds = stream_seconds(cluster, slots);
    if (!seconds) return seconds.error();
    ours.push_back(*seconds * 1e3);
    const auto speed = bare_writes_gb_s(chunk, kMegabytes, kInFlight);
    if (!speed) return speed.error();
    bare.push_back(bytes / *speed / 1e6);
  }
  return samples.add(median(ours), median(bare));
}

Status measure_pairs(const CompareRun& run, PairedSamples& samples) {
  const Workload work = wire_workload();
  ClusterOptions options{work, work.domain_of_rank, NetKind::loopback, {}, "wire-rank", true};
  auto cluster = Cluster::start(options);
  if (!cluster) return cluster.error();
  if (const auto opened = (*cluster)->order({Verb::open_group, 0, 0, 0, 0}); !opened) return opened.error();
  const std::uint32_t chunk = wire_slot_bytes(work);
  const std::uint32_t slots = (kMegabytes << 20) / chunk / kRings * kRings;  // whole rounds over the rings
  if (const auto warm = stream_seconds(**cluster, slots); !warm) return warm.error();
  for (std::uint32_t pair = 0; pair < run.pairs; ++pair) {
    run.progress("wire", pair, run.pairs);
    if (Status added = measure_pair(**cluster, slots, chunk, samples); !added.ok()) return added;
  }
  return {};
}

}  // namespace

void measure_wire(const CompareRun& run, Figures& figures) {
  if (!run.wanted("wire")) return;
  PairedSamples samples;
  const Status status = measure_pairs(run, samples);
  figures.emplace("wire", status.ok() ? speed_ratio(samples, "bare writes", "ms for 96 MiB") : fail(status));
}

}  // namespace railhead::bench
