// What this machine's memory gives: row copies by one and two threads, cached and non-temporal stores.
#include <CLI/CLI.hpp>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "tools/ep-bench/stats.hpp"
#include "tools/peers/common_options.hpp"
#include "tools/peers/process.hpp"
#include "tools/peers/row_copy.hpp"

namespace railhead::peers {
namespace {

struct Options {
  std::size_t row_bytes = 14336;
  std::size_t megabytes = 256;  // per thread and buffer: far beyond the caches
  int rounds = 9;
  unsigned timeout_s = 60;
  bool json = false;
};

struct FreeDeleter {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<std::byte[], FreeDeleter>;

Buffer touched_buffer(std::size_t bytes, int value) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(4096, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, value, bytes);
  return Buffer(memory);
}

void copy_all(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t row_bytes, bool stream) {
  for (std::size_t at = 0; at + row_bytes <= bytes; at += row_bytes) {
    if (stream) {
      stream_row(to + at, from + at, row_bytes);
    } else {
      copy_row(to + at, from + at, row_bytes);
    }
  }
  if (stream) stream_fence();
}

// Median payload rate of all threads together, GB/s.
double measure(const Options& options, int threads, bool stream) {
  const std::size_t bytes = options.megabytes << 20;
  const std::size_t copied = bytes / options.row_bytes * options.row_bytes * static_cast<std::size_t>(threads);
  std::vector<double> rates;
  std::barrier barrier(threads);
  const auto work = [&](int thread) {
    // Best effort: on a machine with fewer CPUs the threads share them, and the figure says what that gives.
    static_cast<void>(pin_to_cpu(thread));
    const Buffer from = touched_buffer(bytes, 1);
    const Buffer to = touched_buffer(bytes, 2);
    for (int round = 0; round < options.rounds; ++round) {
      barrier.arrive_and_wait();
      const double start = now();
      copy_all(to.get(), from.get(), bytes, options.row_bytes, stream);
      barrier.arrive_and_wait();
      if (thread == 0) rates.push_back(static_cast<double>(copied) / (now() - start) / 1e9);
    }
  };
  std::vector<std::thread> running;
  running.reserve(static_cast<std::size_t>(threads));
  for (int thread = 0; thread < threads; ++thread) running.emplace_back(work, thread);
  for (std::thread& thread : running) thread.join();
  return bench::median(rates);
}

int run(const Options& options) {
  nlohmann::json report = {{"row_bytes", options.row_bytes}, {"megabytes", options.megabytes}};
  for (const bool stream : {false, true}) {
    for (const int threads : {1, 2}) {
      const double rate = measure(options, threads, stream);
      const std::string name = std::string(stream ? "stream" : "memcpy") + "_" + std::to_string(threads) + "_gb_s";
      report[name] = rate;
      if (!options.json) std::printf("%-16s %6.2f GB/s\n", name.c_str(), rate);
    }
  }
  if (options.json) std::printf("%s\n", report.dump().c_str());
  return kOk;
}

}  // namespace
}  // namespace railhead::peers

int main(int argc, char** argv) {
  using namespace railhead::peers;
  Options options;
  CLI::App app("Rate of row copies in memory: memcpy and non-temporal stores, one and two threads");
  app.add_option("--row-bytes", options.row_bytes, "Bytes of a row, a multiple of 64")
      ->capture_default_str()
      ->check(CLI::Range(64, 1 << 24));
  app.add_option("--megabytes", options.megabytes, "Size of each buffer")
      ->capture_default_str()
      ->check(CLI::Range(32, 4096));
  app.add_option("--rounds", options.rounds, "Rounds, of which the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  add_common_options(app, options.timeout_s, options.json);
  try {
    app.parse(argc, argv);
    if (options.row_bytes % kStreamBytes != 0) throw CLI::ValidationError("--row-bytes", "must be a multiple of 64");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  end_after(options.timeout_s, "memcpy_rate");
  return run(options);
}
