// Where the benchmark's tokens go: the router's choice, drawn at random, from a text or from a recorded trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/status.hpp"

namespace railhead::bench {

struct RoutingOptions {
  std::uint32_t experts = 0;  // 0: taken from the trace; every other source needs it
  std::uint32_t top_k = 0;    // 0: taken from the trace; every other source needs it
  std::uint64_t seed = 1;
};

// The choice for the tokens of one rank in one round, row-major T x K.
struct Routing {
  std::uint32_t tokens = 0;
  std::uint32_t top_k = 0;
  std::vector<std::int64_t> ids;  // in [0, experts), distinct inside a token; -1 only where a trace says so
  std::vector<float> weights;     // positive, the sum of a token is 1 (a trace's own weights are kept as they are)

  // The same ids as 32-bit words: every source checks that experts fits.
  [[nodiscard]] std::vector<std::int32_t> ids32() const { return {ids.begin(), ids.end()}; }
};

// Immutable after open_routing(); draw() may be called by several threads. The same (spec, options, rank, round,
// tokens) gives the same routing on every machine, and another rank, round or seed gives another one.
class RoutingSource {
 public:
  virtual ~RoutingSource() = default;
  RoutingSource(const RoutingSource&) = delete;
  RoutingSource& operator=(const RoutingSource&) = delete;

  [[nodiscard]] std::uint32_t experts() const noexcept { return options_.experts; }
  [[nodiscard]] std::uint32_t top_k() const noexcept { return options_.top_k; }

  [[nodiscard]] Routing draw(std::uint32_t rank, std::uint64_t round, std::uint32_t tokens) const;

 protected:
  explicit RoutingSource(const RoutingOptions& options) : options_(options) {}
  [[nodiscard]] const RoutingOptions& options() const noexcept { return options_; }

 private:
  // `out` has its final sizes.
  virtual void fill(std::uint32_t rank, std::uint64_t round, Routing& out) const = 0;

  RoutingOptions options_;
};

// spec:
//   uniform      every set of K distinct experts is equally likely
//   zipf:S       expert popularity falls as 1 / n^S (S >= 0); which experts are popular is drawn from the seed
//   text:FILE    words of the file in order; a word always picks the same K distinct experts, by fixed hashes. A rank
//                reads a run of T words (wrapping) that starts where seed, rank and round say
//   trace:FILE   recorded routing, CSV, gzip or plain: `# key=value` lines (routed_experts and top_k are used), a
//   header
//                line `req,token,layer,e0..e{K-1}[,w0..w{K-1}]`, one line per token and layer. Round n uses the n-th
//                layer (modulo); a rank reads a run of T tokens (wrapping) as in text. Without weights they are hashed
// Errors: invalid_argument for a bad spec, for experts or top_k that are missing, do not fit or differ from the file's,
// and for a malformed file, with file and line; system where the file cannot be read.
Result<std::unique_ptr<RoutingSource>> open_routing(std::string_view spec, const RoutingOptions& options);

}  // namespace railhead::bench
