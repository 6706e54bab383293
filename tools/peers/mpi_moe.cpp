// Mixture-of-Experts dispatch and combine over MPI: the peer (dedup, expert) and the direct-store bound (shmwin,
// shmnt). The same rows as the product moves: routing comes from the same sources with the same seed.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/ep-bench/stats.hpp"
#include "tools/peers/common_options.hpp"
#include "tools/peers/moe_exchange.hpp"
#include "tools/peers/process.hpp"

namespace railhead::peers {
namespace {

struct Options {
  std::string mode;
  MoeShape shape{.tokens = 128, .hidden = 7168, .top_k = 8, .experts = 256};
  std::string routing = "uniform";
  std::uint64_t seed = 1;
  int rounds = 20;
  int warmup = 3;
  unsigned timeout_s = 120;
  bool json = false;
};

// Milliseconds per round; after reduce() those of the slowest rank.
struct Times {
  std::vector<double> dispatch, combine, total;

  void add(double start, double middle, double end) {
    dispatch.push_back((middle - start) * 1e3);
    combine.push_back((end - middle) * 1e3);
    total.push_back((end - start) * 1e3);
  }

  void reduce(int rank) {
    for (std::vector<double>* times : {&dispatch, &combine, &total}) {
      const void* from = rank == 0 ? MPI_IN_PLACE : times->data();
      MPI_Reduce(from, times->data(), static_cast<int>(times->size()), MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    }
  }
};

std::unique_ptr<MoeExchange> make_exchange(const Options& options) {
  if (options.mode == "dedup") return make_dedup(options.shape);
  if (options.mode == "expert") return make_expert(options.shape);
  return make_window(options.shape, options.mode == "shmnt");
}

bench::Tensor<Bf16> make_tokens(const MoeShape& shape) {
  bench::Tensor<Bf16> x(std::size_t{shape.tokens} * shape.hidden);
  for (std::uint32_t token = 0; token < shape.tokens; ++token) {
    for (std::uint32_t i = 0; i < shape.hidden; ++i) {
      x[std::size_t{token} * shape.hidden + i] = to_bf16(moe_value(shape.rank, token, i));
    }
  }
  return x;
}

// The largest distance of y from gain * x that rounding does not explain; 0 is a right result.
double largest_error(const MoeExchange& exchange, const MoeShape& shape, const bench::Tensor<Bf16>& x,
                     const bench::Tensor<Bf16>& y) {
  double worst = 0;
  for (std::size_t at = 0; at < y.size(); ++at) {
    const double want = exchange.gain(static_cast<std::uint32_t>(at / shape.hidden)) * from_bf16(x[at]);
    const double off = std::fabs(from_bf16(y[at]) - want);
    if (!(off <= std::fabs(want) / 128 + 1e-6)) worst = std::fmax(worst, off);  // bf16 has 8 significant bits
  }
  return worst;
}

struct Outcome {
  Times times;
  double bytes_per_rank = 0;  // of received rows, mean over ranks and rounds
  double error = 0;           // over all ranks
  bool received = false;      // on all ranks
};

Outcome measure(const Options& options, const bench::RoutingSource& source, MoeExchange& exchange) {
  const MoeShape& shape = options.shape;
  const bench::Tensor<Bf16> x = make_tokens(shape);
  bench::Tensor<Bf16> y(x.size());
  Outcome outcome;
  bench::Routing routing;
  for (int round = 0; round < options.warmup + options.rounds; ++round) {
    routing = source.draw(static_cast<std::uint32_t>(shape.rank), static_cast<std::uint64_t>(round), shape.tokens);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now();
    exchange.dispatch(x.data(), routing);
    const double middle = now();
    exchange.combine(y.data());
    const double end = now();
    if (round < options.warmup) continue;
    outcome.times.add(start, middle, end);
    outcome.bytes_per_rank += static_cast<double>(exchange.received_rows() * shape.row_bytes());
  }
  outcome.error = largest_error(exchange, shape, x, y);
  int right = exchange.received_is_right() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &outcome.error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &outcome.bytes_per_rank, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  outcome.bytes_per_rank /= static_cast<double>(shape.ranks) * options.rounds;
  outcome.received = right == 1;
  outcome.times.reduce(shape.rank);
  return outcome;
}

void report(const Options& options, const Outcome& outcome, bool checked) {
  const MoeShape& shape = options.shape;
  const Times& times = outcome.times;
  if (options.json) {
    const nlohmann::json out = {
        {"mode", options.mode},        {"ranks", shape.ranks},     {"tokens", shape.tokens},
        {"hidden", shape.hidden},      {"topk", shape.top_k},      {"experts", shape.experts},
        {"routing", options.routing},  {"seed", options.seed},     {"bypass_self", shape.bypass_self},
        {"warmup", options.warmup},    {"rounds", options.rounds}, {"bytes_per_rank", outcome.bytes_per_rank},
        {"checked", checked},          {"error", outcome.error},   {"dispatch_ms", times.dispatch},
        {"combine_ms", times.combine}, {"total_ms", times.total},
    };
    std::printf("%s\n", out.dump().c_str());
    return;
  }
  std::printf("%-6s %2d ranks %5u tokens  %7.1f MB/rank  dispatch %8.3f  combine %8.3f  total %8.3f ms (median)  %s\n",
              options.mode.c_str(), shape.ranks, shape.tokens, outcome.bytes_per_rank / 1e6,
              bench::median(times.dispatch), bench::median(times.combine), bench::median(times.total),
              checked ? "checked" : "WRONG RESULT");
}

// Every rank takes the same way through here: an error is the same on all of them.
int run(Options options) {
  MPI_Comm_rank(MPI_COMM_WORLD, &options.shape.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &options.shape.ranks);
  const auto complain = [&](const std::string& what) {
    if (options.shape.rank == 0) std::fprintf(stderr, "mpi_moe: %s\n", what.c_str());
    return kUsage;
  };
  const auto source = bench::open_routing(
      options.routing, {.experts = options.shape.experts, .top_k = options.shape.top_k, .seed = options.seed});
  if (!source) return complain(source.error().message());
  const std::unique_ptr<MoeExchange> exchange = make_exchange(options);
  if (!exchange) return complain(options.mode + " needs all ranks on one host");
  const Outcome outcome = measure(options, **source, *exchange);
  const bool checked = outcome.received && outcome.error == 0;
  if (options.shape.rank == 0) report(options, outcome, checked);
  return checked ? kOk : kFailed;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("mode", options.mode, "dedup, expert, shmwin (bound) or shmnt (bound, non-temporal stores)")
      ->required()
      ->check(CLI::IsMember({"dedup", "expert", "shmwin", "shmnt"}));
  app.add_option("--tokens", options.shape.tokens, "Tokens of each rank")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--hidden", options.shape.hidden, "bf16 elements of a row, a multiple of 32")
      ->capture_default_str()
      ->check(CLI::Range(32, 1 << 20));
  app.add_option("--topk", options.shape.top_k, "Experts of a token")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--experts", options.shape.experts, "Experts in all, in contiguous blocks over the ranks")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--routing", options.routing, "uniform, zipf:S, text:FILE or trace:FILE")->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of the routing")->capture_default_str();
  app.add_option("--rounds", options.rounds, "Measured rounds")->capture_default_str()->check(CLI::Range(1, 1000000));
  app.add_option("--warmup", options.warmup, "Rounds before them")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  app.add_flag("--bypass-self", options.shape.bypass_self, "dedup, expert: a rank's rows for itself do not pass MPI");
  add_common_options(app, options.timeout_s, options.json);
}

}  // namespace
}  // namespace railhead::peers

int main(int argc, char** argv) {
  using namespace railhead::peers;
  Options options;
  CLI::App app(
      "Mixture-of-Experts dispatch and combine over MPI; start it with mpirun. Times are those of the slowest "
      "rank; a round is dispatch and combine without a barrier between them");
  add_options(app, options);
  try {
    app.parse(argc, argv);
    if (options.shape.hidden % 32 != 0) throw CLI::ValidationError("--hidden", "must be a multiple of 32");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  end_after(options.timeout_s, "mpi_moe");
  MPI_Init(&argc, &argv);
  const int code = run(options);
  MPI_Finalize();
  return code;
}
