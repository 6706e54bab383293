#include "tools/ep-bench/compare/peers.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "tools/ep-bench/launch/child.hpp"
#include "tools/ep-bench/launch/daemons.hpp"
#include "tools/ep-bench/stats.hpp"

namespace railhead::bench {
namespace {

constexpr std::chrono::seconds kDeadline{60};
constexpr const char* kPeerTimeout = "50";  // the peer's own, which ends it in order

bool in_path(const char* program) {
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = std::string(rest.substr(0, end)) + "/" + program;
    if (access(path.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// Other programs (mpirun) may have written lines of their own.
Result<nlohmann::json> last_object(const std::string& name, const std::string& text) {
  const std::size_t start = text.rfind("\n{");
  const std::size_t from = text.starts_with('{') && start == std::string::npos ? 0 : start;
  if (from != std::string::npos) {
    std::string_view line = std::string_view(text).substr(from == 0 ? 0 : from + 1);
    line = line.substr(0, line.find('\n'));
    auto object = nlohmann::json::parse(line, nullptr, false);
    if (object.is_object()) return object;
  }
  return fail(Code::protocol, name + " printed no JSON object: " + text.substr(0, 500));
}

}  // namespace

Result<nlohmann::json> run_peer(const std::string& program, const std::vector<std::string>& arguments) {
  const auto path = program_beside(program);
  if (!path) return fail(path.error());
  std::vector<std::string> argv = {*path};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const auto text = run_program(program, argv, ipc::Deadline::after(kDeadline));
  if (!text) return fail(text.error());
  return last_object(program, *text);
}

Result<double> bare_writes_gb_s(std::uint32_t chunk, std::uint32_t megabytes, std::uint32_t in_flight) {
  const auto report =
      run_peer("fabric_loop", {"--chunk", std::to_string(chunk), "--megabytes", std::to_string(megabytes), "--window",
                               std::to_string(in_flight), "--repetitions", "1", "--trips", "1", "--json"});
  if (!report) return fail(report.error());
  return (*report)["gb_s"].get<double>();
}

Status mpi_available(std::uint32_t nodes) {
  if (const auto peer = program_beside("mpi_moe"); !peer) return peer.error();
  if (!in_path("mpirun")) return {Code::unavailable, "mpirun (openmpi-bin) is not installed"};
  if (nodes > 1 && geteuid() != 0) return {Code::permission, "network namespaces for MPI on two nodes need root"};
  if (nodes > 1 && !in_path("ip")) return {Code::unavailable, "ip (iproute2) is not installed"};
  return {};
}

Result<double> run_mpi(const MpiRun& run, const Workload& work) {
  if (Status can = mpi_available(run.nodes); !can.ok()) return fail(can);
  const auto peer = program_beside("mpi_moe");
  const std::string ranks = std::to_string(run.ranks_per_node);
  std::vector<std::string> argv;
  if (run.nodes > 1) {
    const auto script = program_beside("two-nodes");
    if (!script) return fail(script.error());
    argv = {*script, "--timeout", kPeerTimeout, ranks};
  } else {
    argv = {"mpirun",
            "--allow-run-as-root",
            "--oversubscribe",
            "--bind-to",
            "none",
            "-np",
            ranks,
            "--mca",
            "pml",
            "ob1",
            "--mca",
            "btl",
            "vader,self"};
  }
  argv.insert(argv.end(), {*peer,       run.mode,
                           "--tokens",  std::to_string(work.tokens[0]),
                           "--hidden",  std::to_string(work.hidden),
                           "--topk",    std::to_string(work.top_k),
                           "--experts", std::to_string(work.experts),
                           "--routing", work.routing,
                           "--seed",    std::to_string(work.seed),
                           "--warmup",  std::to_string(run.warmup),
                           "--rounds",  std::to_string(run.rounds),
                           "--timeout", kPeerTimeout,
                           "--json"});
  const std::string name = "MPI " + run.mode;
  const auto text = run_program(name, argv, ipc::Deadline::after(kDeadline));
  if (!text) return fail(text.error());
  const auto report = last_object(name, *text);
  if (!report) return fail(report.error());
  if (!report->contains("total_ms")) return fail(Code::protocol, name + ": no total_ms in its report");
  return median((*report)["total_ms"].get<std::vector<double>>());
}

}  // namespace railhead::bench
