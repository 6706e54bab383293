// The options of `ep-bench run`, which `demo` shares with other defaults.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ipc/status.hpp"
#include "tools/ep-bench/launch/network.hpp"
#include "tools/ep-bench/workload.hpp"

namespace railhead::bench {

// As typed. Lists are one number for all, or one per node or rank.
struct RunOptions {
  std::uint32_t nodes = 1;
  std::vector<std::uint32_t> ranks = {4};
  std::string order = "block";
  std::vector<std::uint32_t> tokens = {128};
  std::uint32_t hidden = 7168;
  std::uint32_t top_k = 0;    // 0: 8, or the trace's
  std::uint32_t experts = 0;  // 0: 256, or the trace's
  std::string layout = "rank";
  std::string type = "bf16";
  std::string wire = "bf16";
  std::uint32_t align = 1;
  std::uint32_t channels = 0, depth = 0, slots = 0, chunk = 0;  // 0: the library's default
  std::uint32_t rounds = 20;
  std::uint32_t warmup = 3;
  std::string routing = "uniform";
  std::uint64_t seed = 1;
  bool verify = false;
  bool two_in_flight = false;
  bool in_place = true;
  std::string net = "auto";
  std::string fault;
  std::uint64_t timeout_s = 120;
  std::string join;                   // socket of a running daemon
  std::optional<std::uint32_t> rank;  // which rank this process is, with --join
  std::string id_file;
  bool json = false;
};

// Adds every option of `run` to a (sub)command.
void add_run_options(CLI::App& app, RunOptions& options);

// The plan of a run: options checked against each other and resolved.
struct RunPlan {
  Workload work;
  std::vector<std::uint16_t> node_of_rank;
  NetKind net = NetKind::automatic;
};

// invalid_argument names option, value and what it must be.
Result<RunPlan> make_plan(const RunOptions& options);

}  // namespace railhead::bench
