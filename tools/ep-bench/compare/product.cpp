#include "tools/ep-bench/compare/product.hpp"

#include <vector>

#include "tools/ep-bench/run/summary.hpp"
#include "tools/ep-bench/stats.hpp"

namespace railhead::bench {
namespace {

Workload workload_of(const ProductShape& shape) {
  Workload work;
  const Placement placement = place_ranks(std::vector<std::uint32_t>(shape.nodes, shape.ranks_per_node), false);
  work.domain_of_rank = placement.domain_of_rank;
  work.tokens.assign(work.ranks(), shape.tokens);
  work.layout = shape.layout;
  return work;
}

}  // namespace

Result<Product> Product::start(const ProductShape& shape) {
  const Workload work = workload_of(shape);
  auto cluster = Cluster::start({work, work.domain_of_rank, shape.net, {}});
  if (!cluster) return fail(cluster.error());
  Product product(shape, std::move(*cluster));
  if (const auto opened = product.cluster_->order({Verb::open_group, 0, 0, 0, 0}); !opened) return fail(opened.error());
  if (const auto right = product.cluster_->order({Verb::rounds, 0, 0, 1, 1}); !right) return fail(right.error());
  return product;
}

Result<ProductSample> Product::sample() {
  const std::uint32_t all = shape_.warmup + shape_.rounds;
  const auto done = cluster_->order({Verb::rounds, 0, 0, all, 0});
  if (!done) return fail(done.error());
  const std::uint32_t ranks = work().ranks();
  Summary summary(ranks);
  for (std::uint32_t round = shape_.warmup; round < all; ++round) {
    std::vector<RoundSample> samples;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) samples.push_back(cluster_->control().sample(rank, round));
    summary.add(samples);
  }
  return ProductSample{median(summary.total_ms()), summary.received_mb() * 1e6 * ranks,
                       summary.rail_mb() * 1e6 * ranks};
}

}  // namespace railhead::bench
