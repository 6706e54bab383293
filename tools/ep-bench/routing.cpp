#include "tools/ep-bench/routing.hpp"

#include "tools/ep-bench/routing_hash.hpp"
#include "tools/ep-bench/routing_sources.hpp"

namespace railhead::bench {

Routing RoutingSource::draw(std::uint32_t rank, std::uint64_t round, std::uint32_t tokens) const {
  Routing out{.tokens = tokens, .top_k = top_k(), .ids = {}, .weights = {}};
  const std::size_t slots = std::size_t{tokens} * top_k();
  out.ids.resize(slots);
  out.weights.resize(slots);
  fill(rank, round, out);
  return out;
}

Status check_shape(const RoutingOptions& options) {
  constexpr std::uint32_t kMostExperts = 1u << 20;  // far above any model; keeps ids in 32 bits and tables small
  if (options.experts == 0 || options.experts > kMostExperts) {
    return {Code::invalid_argument, "routing needs a number of experts from 1 to " + std::to_string(kMostExperts) +
                                        ", got " + std::to_string(options.experts)};
  }
  if (options.top_k == 0 || options.top_k > options.experts) {
    return {Code::invalid_argument, "routing needs a top-k from 1 to the number of experts (" +
                                        std::to_string(options.experts) + "), got " + std::to_string(options.top_k)};
  }
  return {};
}

void hashed_weights(std::uint64_t key, std::span<float> weights) {
  const auto raw = [key](std::size_t slot) { return unit_interval(hash_words({key, 0x77656967u, slot})); };
  double sum = 0;
  for (std::size_t slot = 0; slot < weights.size(); ++slot) sum += raw(slot);
  for (std::size_t slot = 0; slot < weights.size(); ++slot) weights[slot] = static_cast<float>(raw(slot) / sum);
}

RoutingResult open_routing(std::string_view spec, const RoutingOptions& options) {
  const std::size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  const bool has_argument = colon != std::string_view::npos && colon + 1 < spec.size();
  const std::string argument(has_argument ? spec.substr(colon + 1) : std::string_view{});

  if (spec == "uniform") return open_uniform(options);
  if (kind == "zipf" && has_argument) return open_zipf(argument, options);
  if (kind == "text" && has_argument) return open_text(argument, options);
  if (kind == "trace" && has_argument) return open_trace(argument, options);
  return fail(Code::invalid_argument,
              "routing '" + std::string(spec) + "' is none of uniform, zipf:EXPONENT, text:FILE, trace:FILE");
}

}  // namespace railhead::bench
