// The figures that are held against a budget, and what a measurement of one comes to.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/status.hpp"
#include "tools/ep-bench/stats.hpp"

namespace railhead::bench {

enum class Better : std::uint8_t { higher, lower };

struct Budget {
  std::string_view key;
  std::string_view what;
  std::string_view unit;  // of the figure: "x" is a ratio
  double limit;
  Better better;
};

// In the order of the report.
std::span<const Budget> budgets();
const Budget* find_budget(std::string_view key);
bool meets(const Budget& budget, double value);

// One measured figure: the value that is held against the budget, and everything it came from.
struct Figure {
  double value = 0;
  nlohmann::json raw;
  std::string peer;  // for people: "MPI dedup 18.1 ms, ours 7.2 ms"
};

// product and peer are times: how many times faster the product is (the lower 95 % bound of the median).
Result<Figure> speed_ratio(const PairedSamples& samples, const std::string& peer_name, const std::string& unit);
// How many times longer the product takes (the upper bound).
Result<Figure> time_ratio(const PairedSamples& samples, const std::string& peer_name, const std::string& unit);
// No peer: the bound of the median on the unfavourable side.
Result<Figure> plain_figure(const std::vector<double>& samples, Better better, const std::string& unit);

// Measures several keys at once where they share the product's rounds. A key that cannot be measured here has
// Code::unavailable or Code::permission; any other code is a failure of the measurement.
using Figures = std::map<std::string, Result<Figure>, std::less<>>;

}  // namespace railhead::bench
