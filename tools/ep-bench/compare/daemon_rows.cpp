// What the daemon does beside moving data: notices a death, makes groups, sleeps.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

#include "tools/ep-bench/compare/rows.hpp"
#include "tools/ep-bench/launch/cluster.hpp"
#include "tools/ep-bench/launch/interrupt.hpp"

namespace railhead::bench {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kDeathsPerPair = 10;
constexpr Command kOpen = {Verb::open_group, 0, 0, 0, 0};
constexpr Command kClose = {Verb::close_group, 0, 0, 0, 0};

Workload small_workload(std::vector<std::uint16_t> domain_of_rank) {
  Workload work;
  work.domain_of_rank = std::move(domain_of_rank);
  work.tokens.assign(work.ranks(), 4);
  work.hidden = 16;
  work.experts = 16;
  work.top_k = 2;
  return work;
}

Result<std::unique_ptr<Cluster>> start(std::vector<std::uint16_t> domain_of_rank) {
  const Workload work = small_workload(std::move(domain_of_rank));
  return Cluster::start({work, work.domain_of_rank, NetKind::automatic, {}});
}

// Survivors wait in a dispatch that the victim never calls, and sleep by the time it is killed.
Status wait_asleep(Cluster& cluster, std::uint32_t survivors) {
  constexpr milliseconds kFallAsleep{5};  // spins end after a tenth of this
  const auto deadline = ipc::Deadline::after(std::chrono::seconds(20));
  while (cluster.control().progress() < survivors) {
    if (Status go = keep_waiting(deadline, "the survivors' dispatch"); !go.ok()) return go;
    std::this_thread::sleep_for(milliseconds(1));
  }
  std::this_thread::sleep_for(kFallAsleep);
  return {};
}

// Milliseconds from the kill of the last rank to the error on the slowest other one. A new group each time.
Result<double> one_death(Cluster& cluster) {
  const std::uint32_t victim = cluster.work().ranks() - 1;
  const auto opened = cluster.order(kOpen);
  if (!opened) return fail(opened.error());
  cluster.control().set_progress(0);
  for (std::uint32_t rank = 0; rank < victim; ++rank) {
    if (Status sent = cluster.send(rank, {Verb::await_loss, 0, 0, 0, 0}); !sent.ok()) return fail(sent);
  }
  if (Status ready = wait_asleep(cluster, victim); !ready.ok()) return fail(ready);
  const std::int64_t killed = cluster.kill_rank(victim);
  std::int64_t last = killed;
  for (std::uint32_t rank = 0; rank < victim; ++rank) {
    const auto answer = cluster.receive(rank);
    if (!answer) return fail(answer.error());
    last = std::max(last, answer->at_ns);
  }
  for (std::uint32_t rank = 0; rank < victim; ++rank) {
    if (Status sent = cluster.send(rank, kClose); !sent.ok()) return fail(sent);
    const auto closed = cluster.receive(rank);
    if (!closed) return fail(closed.error());
  }
  if (Status replaced = cluster.replace_rank(victim); !replaced.ok()) return fail(replaced);
  return static_cast<double>(last - killed) / 1e6;
}

Result<Figure> deaths(const CompareRun& run) {
  auto cluster = start({0, 0, 0, 0});
  if (!cluster) return fail(cluster.error());
  std::vector<double> samples;
  const std::uint32_t all = run.pairs * kDeathsPerPair;
  for (std::uint32_t i = 0; i < all; ++i) {
    run.progress("death_ms", i, all);
    const auto sample = one_death(**cluster);
    if (!sample) return fail(sample.error());
    samples.push_back(*sample);
  }
  const double p99 = percentile(samples, 99);
  char text[80];
  std::snprintf(text, sizeof(text), "median %.3f ms, %u kills", median(samples), all);
  return Figure{p99, {{"unit", "ms"}, {"median", median(samples)}, {"p99", p99}, {"samples", samples}}, text};
}

// The base group keeps the daemons and their connections warm.
Result<Figure> regroups(const CompareRun& run) {
  auto cluster = start({0, 0, 0, 0, 1, 1, 1, 1});
  if (!cluster) return fail(cluster.error());
  if (const auto base = (*cluster)->order(kOpen); !base) return fail(base.error());
  std::vector<double> samples;
  for (std::uint32_t i = 0; i < run.pairs; ++i) {
    run.progress("regroup_ms", i, run.pairs);
    const auto answers = (*cluster)->order({Verb::open_group, 1, 0, 0, 0});
    if (!answers) return fail(answers.error());
    std::int64_t slowest = 0;
    for (const Answer& answer : *answers) slowest = std::max(slowest, answer.elapsed_ns);
    samples.push_back(static_cast<double>(slowest) / 1e6);
    const auto closed = (*cluster)->order({Verb::close_group, 1, 0, 0, 0});
    if (!closed) return fail(closed.error());
  }
  return plain_figure(samples, Better::lower, "ms");
}

Result<double> cpu_seconds(pid_t pid) {
  clockid_t clock = 0;
  timespec used{};
  const int error = clock_getcpuclockid(pid, &clock);
  if (error != 0 || clock_gettime(clock, &used) != 0) return fail(system_status("read a daemon's CPU time", error));
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

Result<Figure> idle(const CompareRun& run) {
  constexpr int kSettleMs = 1000;
  constexpr int kMeasureMs = 10'000;
  constexpr int kStepMs = 100;
  auto cluster = start({0, 0, 0, 0, 0, 0, 0, 0});
  if (!cluster) return fail(cluster.error());
  if (const auto opened = (*cluster)->order(kOpen); !opened) return fail(opened.error());
  const pid_t pid = (*cluster)->daemon(0).process.pid();
  double before = 0;
  std::chrono::steady_clock::time_point start_time;
  for (int at = 0; at < kSettleMs + kMeasureMs; at += kStepMs) {
    if (at == kSettleMs) {
      const auto used = cpu_seconds(pid);
      if (!used) return fail(used.error());
      before = *used;
      start_time = std::chrono::steady_clock::now();
    }
    run.progress("idle_cpu", static_cast<std::size_t>(at / 1000), (kSettleMs + kMeasureMs) / 1000);
    if (interrupted()) return fail(Code::aborted, "interrupted");
    std::this_thread::sleep_for(milliseconds(kStepMs));
  }
  const auto after = cpu_seconds(pid);
  if (!after) return fail(after.error());
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start_time;
  const double share = (*after - before) / wall.count();
  return Figure{share, {{"unit", "share of a core"}, {"cpu_s", *after - before}, {"wall_s", wall.count()}}, {}};
}

template <class Measure>
void fill(const CompareRun& run, const char* key, Measure&& measure, Figures& figures) {
  if (run.wanted(key)) figures.emplace(key, measure(run));
}

}  // namespace

void measure_death(const CompareRun& run, Figures& figures) {
  fill(run, "death_ms", deaths, figures);
}

void measure_regroup(const CompareRun& run, Figures& figures) {
  fill(run, "regroup_ms", regroups, figures);
}

void measure_idle(const CompareRun& run, Figures& figures) {
  fill(run, "idle_cpu", idle, figures);
}

}  // namespace railhead::bench
