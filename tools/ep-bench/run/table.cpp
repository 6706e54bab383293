// A summary as a table for people and as JSON for programs.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/ep-bench/run/summary.hpp"

namespace railhead::bench {
namespace {

template <class... Values>
std::string text(const char* format, Values... values) {
  char line[256];
  std::snprintf(line, sizeof(line), format, values...);
  return line;
}

// Bytes received per rank over the time of the slowest rank.
double gb_per_s(const Summary& summary, double milliseconds) {
  return milliseconds > 0 ? summary.received_mb() / milliseconds : 0;
}

std::string tokens_text(const Workload& work) {
  std::string out;
  bool equal = true;
  for (const std::uint32_t tokens : work.tokens) {
    equal = equal && tokens == work.tokens[0];
    out += (out.empty() ? "" : ",") + std::to_string(tokens);
  }
  return equal ? std::to_string(work.tokens[0]) : out;
}

std::string row(const char* name, const std::vector<double>& samples, const Summary& summary) {
  const Times times = Summary::times(samples);
  return text("  %-9s %10.3f %10.3f %9.2f", name, times.median, times.p99, gb_per_s(summary, times.median));
}

std::string histogram(const char* name, const std::vector<std::uint64_t>& counts) {
  std::string out = text("  last to call %-9s", name);
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] != 0) out += text(" rank %zu: %llu", rank, static_cast<unsigned long long>(counts[rank]));
  }
  return out + "\n";
}

nlohmann::json times_json(const std::vector<double>& samples) {
  const Times times = Summary::times(samples);
  return {{"median", times.median}, {"p99", times.p99}, {"samples", samples}};
}

}  // namespace

std::string table(const Summary& summary, const Workload& work, const std::string& form, bool verified) {
  std::string out =
      text("%u ranks on %u node%s (%s), %s tokens each, H %u %s, top-%u of %u experts, layout %s\n", work.ranks(),
           work.domains(), work.domains() == 1 ? "" : "s", form.c_str(), tokens_text(work).c_str(), work.hidden,
           type_name(work.type), work.top_k, work.experts, layout_name(work.layout));
  out +=
      text("routing %s, seed %llu, %zu rounds%s\n\n", work.routing.c_str(), static_cast<unsigned long long>(work.seed),
           summary.rounds(), work.two_in_flight ? ", two batches in flight" : "");
  out += "              median ms     p99 ms GB/s/rank     wait ms transfer ms\n";
  out += row("dispatch", summary.dispatch_ms(), summary) +
         text("  %10.3f %11.3f\n", summary.dispatch_wait_ms(), summary.dispatch_transfer_ms());
  if (work.combines()) {
    out += row("combine", summary.combine_ms(), summary) +
           text("  %10.3f %11.3f\n", summary.combine_wait_ms(), summary.combine_transfer_ms());
    const Times both = Summary::times(summary.total_ms());
    out += text("  %-9s %10.3f %10.3f\n", "both", both.median, both.p99);
  }
  out += text("\n  received per rank and round: %.1f rows, %.2f MB; sent over the rails: %.2f MB\n", summary.rows(),
              summary.received_mb(), summary.rail_mb());
  out += histogram("dispatch", summary.last_dispatch());
  if (work.combines()) out += histogram("combine", summary.last_combine());
  out += verified ? "  every row, count, map and sum of every round verified\n" : "  not verified (--verify)\n";
  return out;
}

nlohmann::json to_json(const Summary& summary, const Workload& work, const std::string& form, bool verified) {
  nlohmann::json out = {{"workload", to_json(work)},
                        {"net", form},
                        {"rounds", summary.rounds()},
                        {"verified", verified},
                        {"rows_per_rank", summary.rows()},
                        {"received_mb_per_rank", summary.received_mb()},
                        {"rail_mb_per_rank", summary.rail_mb()},
                        {"dispatch_ms", times_json(summary.dispatch_ms())},
                        {"dispatch_wait_ms", summary.dispatch_wait_ms()},
                        {"dispatch_transfer_ms", summary.dispatch_transfer_ms()},
                        {"last_rank_dispatch", summary.last_dispatch()}};
  if (!work.combines()) return out;
  out.update({{"combine_ms", times_json(summary.combine_ms())},
              {"total_ms", times_json(summary.total_ms())},
              {"combine_wait_ms", summary.combine_wait_ms()},
              {"combine_transfer_ms", summary.combine_transfer_ms()},
              {"last_rank_combine", summary.last_combine()}});
  return out;
}

}  // namespace railhead::bench
