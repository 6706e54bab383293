// ep-bench: runs Railhead's dispatch and combine over daemons and ranks that it starts, and compares it with its peers.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "tools/ep-bench/compare/compare.hpp"
#include "tools/ep-bench/compare/wire_rank.hpp"
#include "tools/ep-bench/rank/rank_program.hpp"
#include "tools/ep-bench/run/run.hpp"

namespace railhead::bench {
namespace {

constexpr const char* kText = "/usr/share/common-licenses/GPL-3";  // a text that every Debian carries

RunOptions demo_defaults() {
  RunOptions options;
  options.nodes = 2;
  options.routing = std::string("text:") + kText;
  options.verify = true;
  return options;
}

void add_rank_options(CLI::App& app, RankArguments& arguments) {
  app.group("");  // started by the others; not shown
  app.add_option("--workload", arguments.workload)->required();
  app.add_option("--daemon", arguments.daemon)->required();
  app.add_option("--rank", arguments.rank)->required();
}

int main_program(int argc, char** argv) {
  CLI::App app("Dispatch and combine through Railhead: measured, verified, compared", "ep-bench");
  app.require_subcommand(1);
  RunOptions run_options;
  RunOptions demo_options = demo_defaults();
  RankArguments rank_arguments;
  CompareOptions compare_options;
  auto* run_command = app.add_subcommand("run", "Start nodes and ranks, exchange tokens, print a table of times");
  auto* demo_command = app.add_subcommand("demo", "The same with two nodes, a real text and everything verified");
  auto* compare_command = app.add_subcommand("compare", "Measure the product beside its peers against the budgets");
  auto* rank_command = app.add_subcommand("rank", "");
  add_run_options(*run_command, run_options);
  add_run_options(*demo_command, demo_options);
  add_compare_options(*compare_command, compare_options);
  auto* wire_command = app.add_subcommand("wire-rank", "");
  add_rank_options(*rank_command, rank_arguments);
  add_rank_options(*wire_command, rank_arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  if (run_command->parsed()) return run(run_options);
  if (demo_command->parsed()) return run(demo_options);
  if (compare_command->parsed()) return compare(compare_options);
  return rank_command->parsed() ? rank_main(rank_arguments) : wire_rank_main(rank_arguments);
}

}  // namespace
}  // namespace railhead::bench

int main(int argc, char** argv) try {
  return railhead::bench::main_program(argc, argv);
} catch (const std::exception& error) {
  std::fprintf(stderr, "ep-bench: %s\n", error.what());
  return 1;
}
