// The product as one side of a comparison: a cluster with its group open, and samples of dispatch and combine.
#pragma once

#include <cstdint>
#include <memory>

#include "railhead/railhead.h"
#include "tools/ep-bench/launch/cluster.hpp"

namespace railhead::bench {

struct ProductShape {
  std::uint32_t nodes = 1, ranks_per_node = 4, tokens = 512;
  rh_layout layout = RH_LAYOUT_RANK;
  std::uint32_t warmup = 1, rounds = 3;  // of one sample
  NetKind net = NetKind::automatic;
};

// Of one sample's rounds.
struct ProductSample {
  double ms = 0;          // dispatch and combine together, slowest rank, median
  double row_bytes = 0;   // received rows of all ranks, mean
  double rail_bytes = 0;  // what all ranks sent to other nodes, mean
};

class Product {
 public:
  // Checks one round: figures of a wrong result would be worth nothing. It also warms everything up.
  static Result<Product> start(const ProductShape& shape);

  [[nodiscard]] const Workload& work() const { return cluster_->work(); }
  // Between samples the ranks sleep on their sockets, the daemons on theirs.
  Result<ProductSample> sample();

 private:
  Product(const ProductShape& shape, std::unique_ptr<Cluster> cluster) : shape_(shape), cluster_(std::move(cluster)) {}

  ProductShape shape_;
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace railhead::bench
