// The measurements, in groups that share a set-up. Each fills the figures of the wanted keys.
#pragma once

#include <functional>
#include <string_view>

#include "tools/ep-bench/compare/budget.hpp"

namespace railhead::bench {

struct CompareRun {
  std::uint32_t pairs = 30;
  std::function<bool(std::string_view key)> wanted;
  // Says on the terminal what is being measured: key, done of all.
  std::function<void(std::string_view key, std::size_t done, std::size_t all)> progress;
};

void measure_moe(const CompareRun& run, Figures& figures);       // node_*, node2_*, bound_*, two_nodes*
void measure_many(const CompareRun& run, Figures& figures);      // many_ranks
void measure_wire(const CompareRun& run, Figures& figures);      // wire
void measure_ring(const CompareRun& run, Figures& figures);      // ring_mops
void measure_pingpong(const CompareRun& run, Figures& figures);  // pingpong
void measure_death(const CompareRun& run, Figures& figures);     // death_ms
void measure_regroup(const CompareRun& run, Figures& figures);   // regroup_ms
void measure_idle(const CompareRun& run, Figures& figures);      // idle_cpu

}  // namespace railhead::bench
