#include "tests/fault/rank_rounds.hpp"

#include <set>
#include <stdexcept>

namespace railhead::test {
namespace {

// Small integers: sums of a few are exact in every float type.
float value_of(std::uint32_t rank, std::uint32_t token, std::uint32_t column, std::uint32_t seed) {
  return static_cast<float>((rank * 7 + token * 3 + column + seed) % 128);
}

std::int64_t expert_of(const rh_group_config& config, std::uint32_t rank, std::uint32_t token, std::uint32_t slot,
                       std::uint32_t seed) {
  // Odd multiplier: slots of a token name different experts as long as topk <= experts.
  return (rank + token * 5 + seed + slot) % config.experts;
}

// Default blocks: the first experts % ranks ranks have one more.
std::uint32_t rank_of_expert(const rh_group_config& config, std::int64_t expert) {
  const std::uint32_t base = config.experts / config.ranks;
  const std::uint32_t more = config.experts % config.ranks;
  const auto e = static_cast<std::uint32_t>(expert);
  return e < more * (base + 1) ? e / (base + 1) : more + (e - more * (base + 1)) / base;
}

}  // namespace

Outgoing::Outgoing(const rh_group_config& config, std::uint32_t rank, const RoundSpec& spec)
    : x_(std::size_t{spec.tokens} * config.hidden),
      ids_(std::size_t{spec.tokens} * config.topk),
      args_(make<rh_dispatch_args>()) {
  for (std::uint32_t t = 0; t < spec.tokens; ++t) {
    for (std::uint32_t c = 0; c < config.hidden; ++c) {
      x_[std::size_t{t} * config.hidden + c] = value_of(rank, t, c, spec.seed);
    }
    for (std::uint32_t s = 0; s < config.topk; ++s) {
      ids_[std::size_t{t} * config.topk + s] = expert_of(config, rank, t, s, spec.seed);
    }
  }
  args_.x = x_.data();
  args_.type = RH_FP32;
  args_.tokens = spec.tokens;
  args_.ids = ids_.data();
  args_.layout = spec.layout;
}

std::string wrong_row(const rh_group_config& config, const rh_dispatch_result& result, const RoundSpec& spec) {
  const auto* const rows = static_cast<const float*>(result.rows);
  for (std::uint64_t i = 0; i < result.row_count; ++i) {
    if (result.row_rank[i] < 0) continue;
    const auto rank = static_cast<std::uint32_t>(result.row_rank[i]);
    const auto token = static_cast<std::uint32_t>(result.row_token[i]);
    for (std::uint32_t c = 0; c < config.hidden; ++c) {
      const float got = rows[i * config.hidden + c];
      const float due = value_of(rank, token, c, spec.seed);
      if (got != due) {
        return "row " + std::to_string(i) + " (rank " + std::to_string(rank) + " token " + std::to_string(token) +
               ") column " + std::to_string(c) + " is " + std::to_string(got) + ", not " + std::to_string(due);
      }
    }
  }
  return {};
}

void run_round(const Group& group, const rh_group_config& config, const RoundSpec& spec) {
  const Outgoing out(config, config.rank, spec);
  auto [result, handle] = group.dispatch(out.args());
  if (const std::string wrong = wrong_row(config, result, spec); !wrong.empty()) throw std::runtime_error(wrong);
  std::vector<float> y(std::size_t{spec.tokens} * config.hidden);
  auto combine = make<rh_combine_args>();
  combine.handle = handle.get();
  combine.rows = result.rows;
  combine.row_count = result.row_count;
  combine.type = RH_FP32;
  combine.wire_type = RH_FP32;
  combine.y = y.data();
  group.combine(combine);
  for (std::uint32_t t = 0; t < spec.tokens; ++t) {
    std::set<std::int64_t> places;
    for (std::uint32_t s = 0; s < config.topk; ++s) {
      const std::int64_t expert = expert_of(config, config.rank, t, s, spec.seed);
      places.insert(spec.layout == RH_LAYOUT_RANK ? rank_of_expert(config, expert) : expert);
    }
    for (std::uint32_t c = 0; c < config.hidden; ++c) {
      const float due = value_of(config.rank, t, c, spec.seed) * static_cast<float>(places.size());
      if (const float got = y[std::size_t{t} * config.hidden + c]; got != due) {
        throw std::runtime_error("y of token " + std::to_string(t) + " column " + std::to_string(c) + " is " +
                                 std::to_string(got) + ", not " + std::to_string(due));
      }
    }
  }
}

}  // namespace railhead::test
