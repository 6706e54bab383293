// The bare shared-memory ping-pong: two processes, one cache line each way, no system call while the other answers
// soon.
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/ep-bench/stats.hpp"
#include "tools/peers/common_options.hpp"
#include "tools/peers/process.hpp"

namespace railhead::peers {
namespace {

struct Options {
  int batches = 1000;
  std::vector<int> cpus = {0, 1};
  unsigned timeout_s = 60;
  bool json = false;
};

// The clock is read once per batch: a reading costs a good part of a round trip.
constexpr int kTripsPerBatch = 100;

struct Lines {
  alignas(64) std::atomic<std::uint64_t> ping;
  alignas(64) std::atomic<std::uint64_t> pong;
};

// acquire pairs with the other side's release: the message would carry data.
void wait_for(const std::atomic<std::uint64_t>& line, std::uint64_t value) {
  unsigned spins = 0;
  while (line.load(std::memory_order_acquire) != value) relax(spins);
}

int answer(Lines& lines, const Options& options) {
  end_after(options.timeout_s, "pingpong");  // an alarm is not inherited
  if (const Status pinned = pin_to_cpu(options.cpus[1]); !pinned.ok()) {
    std::fprintf(stderr, "pingpong: %s\n", pinned.message().c_str());
    return kFailed;
  }
  const std::uint64_t trips = static_cast<std::uint64_t>(options.batches) * kTripsPerBatch;
  for (std::uint64_t trip = 1; trip <= trips; ++trip) {
    wait_for(lines.ping, trip);
    lines.pong.store(trip, std::memory_order_release);
  }
  return kOk;
}

// Microseconds of a round trip, one sample per batch.
std::vector<double> ask(Lines& lines, const Options& options) {
  std::vector<double> samples;
  std::uint64_t trip = 0;
  for (int batch = 0; batch < options.batches; ++batch) {
    const double start = now();
    for (int i = 0; i < kTripsPerBatch; ++i) {
      lines.ping.store(++trip, std::memory_order_release);
      wait_for(lines.pong, trip);
    }
    samples.push_back((now() - start) * 1e6 / kTripsPerBatch);
  }
  return samples;
}

int run(const Options& options) {
  void* memory = mmap(nullptr, sizeof(Lines), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "pingpong: %s\n", system_status("mmap", errno).message().c_str());
    return kFailed;
  }
  auto& lines = *new (memory) Lines{};
  const auto child = run_in_child([&] { return answer(lines, options); });
  const Status pinned = child ? pin_to_cpu(options.cpus[0]) : child.error();
  if (!pinned.ok()) {
    std::fprintf(stderr, "pingpong: %s\n", pinned.message().c_str());
    return kFailed;
  }
  const std::vector<double> samples = ask(lines, options);
  if (wait_for_child(*child) != kOk) return kFailed;

  const double p50 = bench::median(samples);
  const double p99 = bench::percentile(samples, 99);
  if (options.json) {
    const nlohmann::json report = {{"rtt_us_p50", p50}, {"rtt_us_p99", p99}, {"batches", options.batches}};
    std::printf("%s\n", report.dump().c_str());
  } else {
    std::printf("round trip: median %.3f us, p99 %.3f us\n", p50, p99);
  }
  return kOk;
}

}  // namespace
}  // namespace railhead::peers

int main(int argc, char** argv) {
  using namespace railhead::peers;
  Options options;
  CLI::App app("Round trip between two processes through two cache lines of shared memory");
  app.add_option("--batches", options.batches, "Batches of 100 round trips; a sample is a batch's mean")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000000));
  app.add_option("--cpus", options.cpus, "CPUs of the two processes, -1 for any")
      ->capture_default_str()
      ->delimiter(',')
      ->expected(2);
  add_common_options(app, options.timeout_s, options.json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  end_after(options.timeout_s, "pingpong");
  return run(options);
}
