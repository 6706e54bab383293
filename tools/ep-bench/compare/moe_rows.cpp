// Dispatch and combine beside MPI and beside the direct-store bound. Every pair starts MPI anew, while our ranks sleep
// on their sockets; then MPI is gone, while our ranks run the same rounds.
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/ep-bench/compare/peers.hpp"
#include "tools/ep-bench/compare/product.hpp"
#include "tools/ep-bench/compare/rows.hpp"

namespace railhead::bench {
namespace {

// Peers of one set-up: which MPI mode answers to which key. A bound has two forms, of which the better one counts.
struct PeerKey {
  const char* key;
  std::array<const char*, 2> modes;  // the second may be null
};

struct Setup {
  ProductShape shape;            // a sample of each side takes a fraction of a second
  std::array<PeerKey, 2> peers;  // the second key may be null
};

constexpr PeerKey kNone = {nullptr, {nullptr, nullptr}};
constexpr Setup kSetups[] = {
    {{1, 4, 128, RH_LAYOUT_RANK, 3, 15},
     {{{"node_rank_t128", {"dedup", nullptr}}, {"bound_t128", {"shmwin", "shmnt"}}}}},
    {{1, 4, 512, RH_LAYOUT_RANK, 2, 7},
     {{{"node_rank_t512", {"dedup", nullptr}}, {"bound_t512", {"shmwin", "shmnt"}}}}},
    {{1, 4, 2048, RH_LAYOUT_RANK, 1, 3},
     {{{"node_rank_t2048", {"dedup", nullptr}}, {"bound_t2048", {"shmwin", "shmnt"}}}}},
    {{1, 2, 512, RH_LAYOUT_RANK, 2, 7}, {{{"node2_rank_t512", {"dedup", nullptr}}, kNone}}},
    {{1, 4, 512, RH_LAYOUT_EXPERT, 1, 3}, {{{"node_expert_t512", {"expert", nullptr}}, kNone}}},
    {{2, 4, 512, RH_LAYOUT_RANK, 1, 3, NetKind::namespaces}, {{{"two_nodes_t512", {"dedup", nullptr}}, kNone}}},
    {{2, 1, 512, RH_LAYOUT_RANK, 3, 15, NetKind::namespaces}, {{{"two_nodes1_t512", {"dedup", nullptr}}, kNone}}},
};

// Samples of one mode beside those of the product in the same pair.
struct Column {
  const char* key;
  const char* mode;
  PairedSamples samples;
  double rank_bytes = 0;  // received rows of a rank in a round, mean: the same tokens on both sides
};

std::vector<Column> wanted_columns(const CompareRun& run, const Setup& setup) {
  std::vector<Column> out;
  for (const PeerKey& peer : setup.peers) {
    if (peer.key == nullptr || !run.wanted(peer.key)) continue;
    for (const char* mode : peer.modes) {
      if (mode != nullptr) out.push_back({peer.key, mode, {}, 0});
    }
  }
  return out;
}

Status measure_pairs(const CompareRun& run, const Setup& setup, std::vector<Column>& columns) {
  const ProductShape& shape = setup.shape;
  if (Status can = mpi_available(shape.nodes); !can.ok()) return can;
  auto product = Product::start(shape);
  if (!product) return product.error();
  for (std::uint32_t pair = 0; pair < run.pairs; ++pair) {
    run.progress(columns[0].key, pair, run.pairs);
    const auto ours = product->sample();
    if (!ours) return ours.error();
    for (Column& column : columns) {
      const auto theirs =
          run_mpi({column.mode, shape.nodes, shape.ranks_per_node, shape.warmup, shape.rounds}, product->work());
      if (!theirs) return theirs.error();
      if (Status added = column.samples.add(ours->ms, *theirs); !added.ok()) return added;
      column.rank_bytes = ours->row_bytes / product->work().ranks();
    }
  }
  return {};
}

// Of the columns with the same key, the one whose peer is faster in the median: of the two forms of the bound.
const Column& best_column(const std::vector<Column>& columns, const Column& of) {
  const Column* best = &of;
  for (const Column& column : columns) {
    if (std::string_view(column.key) != of.key) continue;
    if (median(column.samples.peer()) < median(best->samples.peer())) best = &column;
  }
  return *best;
}

// Rows received by a rank over the time of dispatch and combine, of both sides.
Result<Figure> with_rates(Result<Figure> figure, double rank_bytes) {
  if (!figure) return figure;
  const auto rate = [&](const char* side) { return rank_bytes / 1e6 / figure->raw[side].get<double>(); };
  figure->raw["gb_s_per_rank"] = {{"product", rate("product_median")}, {"peer", rate("peer_median")}};
  return figure;
}

void measure_setup(const CompareRun& run, const Setup& setup, Figures& figures) {
  std::vector<Column> columns = wanted_columns(run, setup);
  if (columns.empty()) return;
  const Status status = measure_pairs(run, setup, columns);
  for (const Column& column : columns) {
    if (!status.ok()) {
      figures.insert_or_assign(column.key, Result<Figure>(fail(status)));
      continue;
    }
    const Column& best = best_column(columns, column);
    auto figure = speed_ratio(best.samples, std::string("MPI ") + best.mode, "ms");
    figures.insert_or_assign(column.key, with_rates(std::move(figure), best.rank_bytes));
  }
}

}  // namespace

void measure_moe(const CompareRun& run, Figures& figures) {
  for (const Setup& setup : kSetups) measure_setup(run, setup, figures);
}

}  // namespace railhead::bench
