// The kinds of routing sources behind open_routing(). Internal to the folder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ipc/status.hpp"
#include "tools/ep-bench/routing.hpp"

namespace railhead::bench {

using RoutingResult = Result<std::unique_ptr<RoutingSource>>;

RoutingResult open_uniform(const RoutingOptions& options);
RoutingResult open_zipf(std::string_view exponent, const RoutingOptions& options);
RoutingResult open_text(const std::string& path, const RoutingOptions& options);
RoutingResult open_trace(const std::string& path, const RoutingOptions& options);

// Experts and top_k are given and a token can have top_k distinct experts.
Status check_shape(const RoutingOptions& options);

// Weights in (0, 1] whose sum is 1 (before rounding to fp32), from a hash of `key` and the slot.
void hashed_weights(std::uint64_t key, std::span<float> weights);

// The whole file, unpacked if it is gzip. Fails naming the path.
Result<std::string> read_maybe_gzip(const std::string& path);

}  // namespace railhead::bench
