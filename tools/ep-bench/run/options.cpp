#include "tools/ep-bench/run/options.hpp"

#include <map>
#include <numeric>

#include "tools/ep-bench/routing.hpp"

namespace railhead::bench {
namespace {

constexpr std::uint32_t kDefaultTopK = 8;
constexpr std::uint32_t kDefaultExperts = 256;
constexpr std::uint32_t kMostRanks = 4096;

const std::map<std::string, rh_type> kTypes = {{"u8", RH_U8}, {"bf16", RH_BF16}, {"fp16", RH_FP16}, {"fp32", RH_FP32}};
const std::map<std::string, NetKind> kNets = {
    {"auto", NetKind::automatic}, {"loopback", NetKind::loopback}, {"netns", NetKind::namespaces}};

// One value for all, or one each.
Result<std::vector<std::uint32_t>> spread(const char* option, const std::vector<std::uint32_t>& values,
                                          std::size_t count, const char* unit) {
  if (values.size() == 1) return std::vector<std::uint32_t>(count, values[0]);
  if (values.size() == count) return values;
  return fail(Code::invalid_argument, std::string(option) + " has " + std::to_string(values.size()) +
                                          " numbers: give one for all, or one for each of the " +
                                          std::to_string(count) + " " + unit);
}

Status check_join(const RunOptions& options, std::uint32_t ranks) {
  if (options.join.empty()) {
    if (!options.rank && options.id_file.empty()) return {};
    return {Code::invalid_argument, "--rank and --id-file belong to --join"};
  }
  if (!options.rank || options.id_file.empty()) {
    return {Code::invalid_argument, "--join needs --rank (which of the ranks this process is) and --id-file"};
  }
  if (*options.rank >= ranks) {
    return {Code::invalid_argument,
            "--rank is " + std::to_string(*options.rank) + ", the ranks are 0 to " + std::to_string(ranks - 1)};
  }
  if (!options.fault.empty())
    return {Code::invalid_argument, "--fault is set at daemons that run starts, not with --join"};
  return {};
}

// The number of experts and the top-k may come from a trace.
Status take_routing(const RunOptions& options, Workload& work) {
  const bool trace = options.routing.starts_with("trace:");
  work.experts = options.experts != 0 || trace ? options.experts : kDefaultExperts;
  work.top_k = options.top_k != 0 || trace ? options.top_k : kDefaultTopK;
  const auto source = open_routing(options.routing, {work.experts, work.top_k, options.seed});
  if (!source) return source.error();
  work.experts = (*source)->experts();
  work.top_k = (*source)->top_k();
  return {};
}

}  // namespace

void add_run_options(CLI::App& app, RunOptions& o) {
  const auto number = CLI::Range(0U, 1U << 30);
  const auto group = [&app](const char* name) { return app.add_option_group(name); };
  auto* shape = group("Nodes and ranks");
  shape->add_option("--nodes", o.nodes, "Nodes, one daemon each")->capture_default_str()->check(CLI::Range(1, 250));
  shape->add_option("--ranks", o.ranks, "Ranks of each node: a number, or a list as 3,5")
      ->delimiter(',')
      ->capture_default_str()
      ->check(number);
  shape->add_option("--order", o.order, "How ranks are numbered over the nodes: block or interleave")
      ->capture_default_str()
      ->check(CLI::IsMember({"block", "interleave"}));
  shape->add_option("--net", o.net, "auto, loopback, or netns: a network namespace per node (root)")
      ->capture_default_str()
      ->check(CLI::IsMember(kNets));
  shape->add_option("--fault", o.fault, "Faults that the daemons inject, as 'seed=1,reorder=8,delay=16'");

  auto* load = group("What is sent");
  load->add_option("--tokens", o.tokens, "Tokens of each rank: a number, or a list with one per rank")
      ->delimiter(',')
      ->capture_default_str()
      ->check(number);
  load->add_option("--hidden", o.hidden, "Elements of a token")->capture_default_str()->check(CLI::Range(1, 1 << 20));
  load->add_option("--topk", o.top_k, "Experts of a token [8, or the trace's]")->check(CLI::Range(1, 256));
  load->add_option("--experts", o.experts, "Experts in all [256, or the trace's]")->check(CLI::Range(1, 65535));
  load->add_option("--layout", o.layout, "rank or expert")
      ->capture_default_str()
      ->check(CLI::IsMember({"rank", "expert"}));
  load->add_option("--align", o.align, "Layout expert: pad each expert's rows to a multiple")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  load->add_option("--type", o.type, "bf16, fp16, fp32, or u8 (dispatch only)")
      ->capture_default_str()
      ->check(CLI::IsMember(kTypes));
  load->add_option("--wire", o.wire, "Partial sums between nodes: bf16 or fp32")
      ->capture_default_str()
      ->check(CLI::IsMember({"bf16", "fp32"}));
  load->add_option("--routing", o.routing, "uniform, zipf:S, text:FILE or trace:FILE (docs/benchmarks.md)")
      ->capture_default_str();
  load->add_option("--seed", o.seed, "Seed of routing and data")->capture_default_str();

  auto* group_options = group("The group (0: the library's default)");
  group_options->add_option("--channels", o.channels, "Channels of a rank")
      ->capture_default_str()
      ->check(CLI::Range(0, 64));
  group_options->add_option("--depth", o.depth, "Operations in flight")->capture_default_str()->check(CLI::Range(0, 8));
  group_options->add_option("--slots", o.slots, "Receive slots of a rail ring")
      ->capture_default_str()
      ->check(CLI::Range(0, 256));
  group_options->add_option("--chunk", o.chunk, "Bytes of a rail chunk")->capture_default_str()->check(number);

  auto* how = group("How it is measured");
  how->add_option("--rounds", o.rounds, "Measured rounds")->capture_default_str()->check(CLI::Range(1, 10'000'000));
  how->add_option("--warmup", o.warmup, "Rounds before them")->capture_default_str()->check(CLI::Range(0, 1'000'000));
  how->add_flag("--verify", o.verify, "Compare all that arrives in every round with a plain reference");
  how->add_flag("--async", o.two_in_flight, "Two batches of tokens a round, their operations in flight together");
  how->add_flag("--in-place,!--no-in-place", o.in_place, "Rows stay in the arena between dispatch and combine [on]");
  how->add_option("--timeout", o.timeout_s, "Seconds without progress until the run is given up")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  how->add_flag("--json", o.json, "Print one JSON object");

  auto* join = group("Joining running daemons, one command per rank");
  join->add_option("--join", o.join,
                   "Socket of this node's daemon; --nodes, --ranks and --order say where all ranks are");
  join->add_option("--rank", o.rank, "Which rank this process is");
  join->add_option("--id-file", o.id_file,
                   "File that spreads the group's id: rank 0 writes it, the others wait for it");
}

Result<RunPlan> make_plan(const RunOptions& options) {
  RunPlan plan;
  auto per_node = spread("--ranks", options.ranks, options.nodes, "nodes");
  if (!per_node) return fail(per_node.error());
  const std::uint64_t ranks = std::accumulate(per_node->begin(), per_node->end(), std::uint64_t{0});
  if (ranks == 0 || ranks > kMostRanks) {
    return fail(Code::invalid_argument,
                "--ranks make " + std::to_string(ranks) + " in all: there must be 1 to " + std::to_string(kMostRanks));
  }
  const Placement placement = place_ranks(*per_node, options.order == "interleave");
  auto tokens = spread("--tokens", options.tokens, ranks, "ranks");
  if (!tokens) return fail(tokens.error());

  Workload& work = plan.work;
  work.domain_of_rank = placement.domain_of_rank;
  work.tokens = std::move(*tokens);
  work.hidden = options.hidden;
  work.layout = options.layout == "rank" ? RH_LAYOUT_RANK : RH_LAYOUT_EXPERT;
  work.align = options.align;
  work.type = kTypes.at(options.type);
  work.wire = kTypes.at(options.wire);
  work.channels = options.channels;
  work.depth = options.depth;
  work.ring_slots = options.slots;
  work.chunk_bytes = options.chunk;
  work.routing = options.routing;
  work.seed = options.seed;
  work.in_place = options.in_place;
  work.two_in_flight = options.two_in_flight;
  work.timeout_s = options.timeout_s;
  plan.node_of_rank = placement.node_of_rank;
  plan.net = kNets.at(options.net);
  if (work.align > 1 && work.layout == RH_LAYOUT_RANK) {
    return fail(Code::invalid_argument, "--align is for --layout expert: layout rank has no padding");
  }
  if (work.two_in_flight && !work.in_place) {
    return fail(Code::invalid_argument, "--async needs rows in place: leave --no-in-place out");
  }
  if (Status routed = take_routing(options, work); !routed.ok()) return fail(routed);
  if (Status joined = check_join(options, work.ranks()); !joined.ok()) return fail(joined);
  return plan;
}

}  // namespace railhead::bench
