#include "tools/ep-bench/run/run.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/ep-bench/launch/cluster.hpp"
#include "tools/ep-bench/launch/interrupt.hpp"
#include "tools/ep-bench/run/join.hpp"
#include "tools/ep-bench/run/progress.hpp"
#include "tools/ep-bench/run/summary.hpp"

namespace railhead::bench {
namespace {

std::vector<RoundSample> samples_of(Cluster& cluster, std::uint32_t round) {
  std::vector<RoundSample> out;
  for (std::uint32_t rank = 0; rank < cluster.work().ranks(); ++rank) {
    out.push_back(cluster.control().sample(rank, round));
  }
  return out;
}

// Rounds in commands of a few each: between two commands their figures are taken.
Result<Summary> measure(Cluster& cluster, const RunOptions& options) {
  Summary summary(cluster.work().ranks());
  Progress progress(options.warmup + options.rounds);
  const std::uint64_t all = std::uint64_t{options.warmup} + options.rounds;
  for (std::uint64_t first = 0; first < all;) {
    const std::uint64_t most = first < options.warmup ? options.warmup - first : all - first;
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, kRoundsPerCommand));
    const Command command{Verb::rounds, 0, first, count, options.verify ? 1U : 0U};
    const auto done = cluster.order(command, [&](std::uint32_t rounds) {
      progress.show(
          first + rounds, [&](std::uint32_t i) { return cluster.control().sample(0, i); }, rounds);
    });
    if (!done) return fail(done.error());
    for (std::uint32_t i = 0; i < count && first >= options.warmup; ++i) summary.add(samples_of(cluster, i));
    first += count;
  }
  return summary;
}

struct Outcome {
  Summary summary;
  std::string form;
};

Result<Outcome> launch(const RunOptions& options, const RunPlan& plan) {
  auto cluster = Cluster::start({plan.work, plan.node_of_rank, plan.net, options.fault});
  if (!cluster) return fail(cluster.error());
  const auto opened = (*cluster)->order({Verb::open_group, 0, 0, 0, 0});
  if (!opened) return fail(opened.error());
  auto summary = measure(**cluster, options);
  if (!summary) return fail(summary.error());
  const auto closed = (*cluster)->order({Verb::close_group, 0, 0, 0, 0});
  if (!closed) return fail(closed.error());
  return Outcome{std::move(*summary), (*cluster)->network_form()};
}

int complain(const Status& status) {
  std::fprintf(stderr, "ep-bench: %s\n", status.to_string().c_str());
  return status.code() == Code::invalid_argument ? kUsage : kFailed;
}

}  // namespace

int run(const RunOptions& options) {
  const auto plan = make_plan(options);
  if (!plan) return complain(plan.error());
  catch_interrupts();
  Result<Outcome> outcome = fail(Code::internal, "not run");
  if (options.join.empty()) {
    outcome = launch(options, *plan);
  } else {
    auto summary = join_as_rank(options, plan->work);
    outcome = summary ? Result<Outcome>(Outcome{std::move(*summary), "joined " + options.join})
                      : Result<Outcome>(fail(summary.error()));
  }
  if (!outcome) {
    complain(outcome.error());
    return kFailed;
  }
  const std::string text = options.json
                               ? to_json(outcome->summary, plan->work, outcome->form, options.verify).dump() + "\n"
                               : table(outcome->summary, plan->work, outcome->form, options.verify);
  std::fputs(text.c_str(), stdout);
  return kOk;
}

}  // namespace railhead::bench
