#include "tools/ep-bench/compare/compare.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "ipc/version.hpp"
#include "tools/ep-bench/compare/rows.hpp"
#include "tools/ep-bench/launch/interrupt.hpp"
#include "tools/ep-bench/run/run.hpp"

namespace railhead::bench {
namespace {

constexpr std::uint32_t kFewestPairs = 5;  // below, a 95 % bound of a median does not exist

bool absent(const Status& status) {
  return status.code() == Code::unavailable || status.code() == Code::permission;
}

std::string first_line(const char* path, std::string_view start) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(start))
      return line.substr(std::min(line.find_first_not_of(": \t", start.size()), line.size()));
  }
  return {};
}

nlohmann::json machine() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  std::string kernel;
  std::getline(std::ifstream("/proc/sys/kernel/osrelease") >> std::ws, kernel);
  return {{"cpu", first_line("/proc/cpuinfo", "model name")},
          {"cores", std::thread::hardware_concurrency()},
          {"memory", first_line("/proc/meminfo", "MemTotal")},
          {"kernel", kernel},
          {"load_before", load},
          {"build", ipc::build_string()}};
}

// Shows what is being measured, on a terminal only.
class Line {
 public:
  void show(std::string_view key, std::size_t done, std::size_t all) const {
    if (terminal_) {
      std::fprintf(stderr, "\r%.*s: %zu of %zu\033[K", static_cast<int>(key.size()), key.data(), done + 1, all);
    }
  }
  void clear() const {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
};

bool failed(const Budget& budget, const Result<Figure>& figure) {
  return figure ? !meets(budget, figure->value) : !absent(figure.error());
}

std::string row(const Budget& budget, const Result<Figure>& figure) {
  std::ostringstream out;
  char text[128];
  std::snprintf(text, sizeof(text), "%-17s ", std::string(budget.key).c_str());
  out << text;
  if (!figure) {
    out << (absent(figure.error()) ? "absent: " : "FAILED: ") << figure.error().message() << "\n";
    return out.str();
  }
  const bool high = budget.better == Better::higher;
  std::snprintf(text, sizeof(text), "%9.4g %-3s %s %-6.4g %-6s  ", figure->value, std::string(budget.unit).c_str(),
                high ? ">=" : "<=", budget.limit, meets(budget, figure->value) ? "ok" : "MISSED");
  out << text << budget.what;
  if (!figure->peer.empty()) out << " (" << figure->peer << ")";
  out << "\n";
  return out.str();
}

std::string table(const Figures& figures) {
  std::string out;
  for (const Budget& budget : budgets()) {
    const auto found = figures.find(budget.key);
    if (found != figures.end()) out += row(budget, found->second);
  }
  return out;
}

// For whom the rates are news and the budgets are not.
std::string rates_table(const Figures& figures) {
  std::string out = "GB/s/rank           Railhead       peer      ratio\n";
  for (const Budget& budget : budgets()) {
    const auto found = figures.find(budget.key);
    if (found == figures.end()) continue;
    const Result<Figure>& figure = found->second;
    if (!figure) {
      out += row(budget, figure);
      continue;
    }
    const auto rates = figure->raw.find("gb_s_per_rank");
    if (rates == figure->raw.end()) continue;
    char text[160];
    std::snprintf(text, sizeof(text), "%-17s %10.2f %10.2f %8.1f x  ", std::string(budget.key).c_str(),
                  (*rates)["product"].get<double>(), (*rates)["peer"].get<double>(),
                  figure->raw["median"].get<double>());
    out += text + std::string(budget.what) + "\n";
  }
  return out;
}

nlohmann::json report(const Figures& figures, const CompareOptions& options, nlohmann::json machine) {
  nlohmann::json out = {{"ratios", nlohmann::json::object()}, {"limits", nlohmann::json::object()},
                        {"raw", nlohmann::json::object()},    {"absent", nlohmann::json::object()},
                        {"failed", nlohmann::json::object()}, {"pairs", options.pairs}};
  for (const auto& [key, figure] : figures) {
    const Budget& budget = *find_budget(key);
    out["limits"][key] = {{budget.better == Better::higher ? "at_least" : "at_most", budget.limit}};
    if (figure) {
      out["ratios"][key] = figure->value;
      out["raw"][key] = figure->raw;
    } else {
      out[absent(figure.error()) ? "absent" : "failed"][key] = figure.error().message();
    }
  }
  out["machine"] = std::move(machine);
  return out;
}

Figures measure(const CompareOptions& options, const Line& line) {
  CompareRun run;
  run.pairs = options.pairs;
  run.wanted = [&](std::string_view key) {
    return !interrupted() &&
           (options.only.empty() || std::find(options.only.begin(), options.only.end(), key) != options.only.end());
  };
  run.progress = [&](std::string_view key, std::size_t done, std::size_t all) { line.show(key, done, all); };
  Figures figures;
  for (const auto measure_group : {measure_moe, measure_many, measure_wire, measure_ring, measure_pingpong,
                                   measure_death, measure_regroup, measure_idle}) {
    measure_group(run, figures);
  }
  return figures;
}

}  // namespace

void add_compare_options(CLI::App& app, CompareOptions& options) {
  std::vector<std::string> keys;
  for (const Budget& budget : budgets()) keys.emplace_back(budget.key);
  app.add_option("--only", options.only, "Measure these keys alone")->delimiter(',')->check(CLI::IsMember(keys));
  app.add_option("--pairs", options.pairs, "Samples of each side, taken in turns")
      ->capture_default_str()
      ->check(CLI::Range(kFewestPairs, 10'000U));
  auto* json =
      app.add_flag("--json", options.json, "Print one JSON object: ratios, limits, raw, absent, failed, machine");
  app.add_flag("--rates", options.rates, "Print the rates of both sides, of the keys that have them, not the budgets")
      ->excludes(json);
  app.add_flag("--no-fail", options.no_fail, "Exit with 0 also where a budget is missed");
}

int compare(const CompareOptions& options) {
  catch_interrupts();
  auto host = machine();
  const Line line;
  const Figures figures = measure(options, line);
  line.clear();
  const std::string text = options.json    ? report(figures, options, std::move(host)).dump() + "\n"
                           : options.rates ? rates_table(figures)
                                           : table(figures);
  std::fputs(text.c_str(), stdout);
  if (interrupted()) return kFailed;
  const bool missed = std::any_of(figures.begin(), figures.end(),
                                  [](const auto& entry) { return failed(*find_budget(entry.first), entry.second); });
  return missed && !options.no_fail ? kFailed : kOk;
}

}  // namespace railhead::bench
