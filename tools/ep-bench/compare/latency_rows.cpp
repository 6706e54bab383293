// The ring and the one-token round trip.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "ipc/ring.hpp"
#include "ipc/segment.hpp"
#include "tools/ep-bench/compare/peers.hpp"
#include "tools/ep-bench/compare/rows.hpp"
#include "tools/ep-bench/launch/cluster.hpp"
#include "tools/ep-bench/launch/interrupt.hpp"

namespace railhead::bench {
namespace {

constexpr std::uint64_t kDescriptors = 1'000'000;
constexpr std::uint32_t kCapacity = 256;
constexpr std::uint32_t kGeneration = 1;
constexpr std::size_t kBatch = 32;
constexpr std::chrono::seconds kRingDeadline{20};

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  static_cast<void>(sched_setaffinity(0, sizeof(set), &set));
}

// In a child: its exit code says whether it pushed all of them.
int produce(const ipc::Segment& memory) {
  auto producer = ipc::RingProducer::attach(memory.span(), kCapacity, kGeneration);
  if (!producer) return 1;
  const auto deadline = ipc::Deadline::after(kRingDeadline);
  for (std::uint64_t i = 0; i < kDescriptors; ++i) {
    while (!producer->try_push({i, i})) {
      if (producer->corrupt() || deadline.expired()) return 1;
    }
  }
  return 0;
}

// Million descriptors per second, each checked.
Result<double> consume(const ipc::Segment& memory) {
  auto consumer = ipc::RingConsumer::attach(memory.span(), kCapacity, kGeneration);
  if (!consumer) return fail(consumer.error());
  const auto deadline = ipc::Deadline::after(kRingDeadline);
  std::array<ipc::Descriptor, kBatch> out;
  const auto take_until = [&](std::uint64_t end) -> Status {
    while (consumer->popped() < end) {
      const std::uint64_t first = consumer->popped();
      const std::size_t taken = consumer->pop_batch(out);
      if (taken == 0 && deadline.expired()) return {Code::timeout, "the ring's producer does not go on"};
      for (std::size_t i = 0; i < taken; ++i) {
        if (out[i] != ipc::Descriptor{first + i, first + i}) return {Code::internal, "a wrong descriptor came out"};
      }
    }
    return {};
  };
  // The first lap starts the clock: the start of the other process is not part of the rate.
  if (Status warm = take_until(kCapacity); !warm.ok()) return fail(warm);
  const std::uint64_t before = consumer->popped();
  const auto start = ipc::Deadline::Clock::now();
  if (Status all = take_until(kDescriptors); !all.ok()) return fail(all);
  const std::chrono::duration<double, std::micro> took = ipc::Deadline::Clock::now() - start;
  return static_cast<double>(kDescriptors - before) / took.count();
}

Result<double> ring_rate() {
  const auto memory = ipc::Segment::create("ep-bench-ring", ipc::ring_bytes(kCapacity));
  if (!memory) return fail(memory.error());
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return fail(system_status("fork", errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    pin(1);
    _exit(produce(*memory));
  }
  pin(0);
  auto rate = consume(*memory);
  if (!rate) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return rate;
}

Status measure_rates(const CompareRun& run, std::vector<double>& rates) {
  cpu_set_t before;
  sched_getaffinity(0, sizeof(before), &before);
  if (CPU_COUNT(&before) < 2) return {Code::unavailable, "two cores are needed"};
  Status status;
  for (std::uint32_t i = 0; i < run.pairs && status.ok(); ++i) {
    run.progress("ring_mops", i, run.pairs);
    const auto rate = ring_rate();
    if (rate) rates.push_back(*rate);
    status = !rate ? rate.error() : interrupted() ? Status(Code::aborted, "interrupted") : Status();
  }
  sched_setaffinity(0, sizeof(before), &before);
  return status;
}

// Both sides by the median of as many batches: a batch in which the scheduler took a core away is no round trip.
constexpr std::uint32_t kBatches = 200;

Status measure_trips(const CompareRun& run, PairedSamples& samples) {
  Workload work;
  work.domain_of_rank = {0, 0};
  work.tokens = {1, 1};
  work.hidden = 16;
  work.experts = 2;
  work.top_k = 2;  // the token goes to both ranks
  auto cluster = Cluster::start({work, work.domain_of_rank, NetKind::automatic, {}});
  if (!cluster) return cluster.error();
  const auto opened = (*cluster)->order({Verb::open_group, 0, 0, 0, 0});
  if (!opened) return opened.error();
  const auto right = (*cluster)->order({Verb::rounds, 0, 0, 8, 1});
  if (!right) return right.error();
  for (std::uint32_t pair = 0; pair < run.pairs; ++pair) {
    run.progress("pingpong", pair, run.pairs);
    const auto answers = (*cluster)->order({Verb::loop, 0, 0, kBatches, 0});
    if (!answers) return answers.error();
    std::int64_t slowest = 0;
    for (const Answer& answer : *answers) slowest = std::max(slowest, answer.elapsed_ns);
    const auto peer = run_peer("pingpong", {"--batches", std::to_string(kBatches), "--json"});
    if (!peer) return peer.error();
    const double ours_us = static_cast<double>(slowest) / 1e3 / kLoopBatch;
    if (Status added = samples.add(ours_us, (*peer)["rtt_us_p50"].get<double>()); !added.ok()) return added;
  }
  return {};
}

}  // namespace

void measure_ring(const CompareRun& run, Figures& figures) {
  if (!run.wanted("ring_mops")) return;
  std::vector<double> rates;
  const Status status = measure_rates(run, rates);
  figures.emplace("ring_mops", status.ok() ? plain_figure(rates, Better::higher, "M/s") : fail(status));
}

void measure_pingpong(const CompareRun& run, Figures& figures) {
  if (!run.wanted("pingpong")) return;
  PairedSamples samples;
  const Status status = measure_trips(run, samples);
  figures.emplace("pingpong", status.ok() ? time_ratio(samples, "bare round trip", "us") : fail(status));
}

}  // namespace railhead::bench
