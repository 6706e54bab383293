// The peer programs, run to their end, one run per sample.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ipc/status.hpp"
#include "tools/ep-bench/workload.hpp"

namespace railhead::bench {

// The JSON object that a peer beside this program prints. unavailable where it was not built.
Result<nlohmann::json> run_peer(const std::string& program, const std::vector<std::string>& arguments);

// GB/s of a bare loop of libfabric writes over loopback, one stream of a process started for it. One start differs from
// the next by a fifth: take several.
Result<double> bare_writes_gb_s(std::uint32_t chunk, std::uint32_t megabytes, std::uint32_t in_flight = 32);

struct MpiRun {
  std::string mode;  // dedup, expert, shmwin, shmnt
  std::uint32_t nodes = 1;
  std::uint32_t ranks_per_node = 4;
  std::uint32_t warmup = 1;
  std::uint32_t rounds = 1;
};

// Milliseconds of dispatch and combine together, the median of the run's rounds. The same tokens as the workload's
// rounds of these numbers. unavailable without Open MPI; permission without root for two nodes.
Result<double> run_mpi(const MpiRun& run, const Workload& work);
// Why run_mpi() cannot work here, or ok.
Status mpi_available(std::uint32_t nodes);

}  // namespace railhead::bench
