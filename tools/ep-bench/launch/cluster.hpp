// The daemons and rank processes of one workload, and the commands they are given. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/ep-bench/launch/daemons.hpp"
#include "tools/ep-bench/rank/control.hpp"
#include "tools/ep-bench/workload.hpp"

namespace railhead::bench {

struct ClusterOptions {
  Workload work;
  std::vector<std::uint16_t> node_of_rank;
  NetKind net = NetKind::automatic;
  std::string fault;
  std::string rank_command = "rank";  // the hidden subcommand that a rank process runs
  bool pin_proxies = false;           // the proxies of node i to core i
};

class Cluster {
 public:
  // Starts everything; the ranks have sessions, but no group yet. On failure nothing is left behind.
  static Result<std::unique_ptr<Cluster>> start(const ClusterOptions& options);
  ~Cluster();  // ends ranks, then daemons

  // Called while the launcher waits, a few times a second, with Control::progress().
  using Watch = std::function<void(std::uint32_t)>;

  // One command for every rank; answers in rank order when all have come. The error is that of the first rank that
  // failed, by name; the others are then told to give up and the cluster is of no further use.
  Result<std::vector<Answer>> order(const Command& command, const Watch& watch = {});
  // For a command that some ranks alone get: the halves of order().
  Status send(std::uint32_t rank, const Command& command);
  Result<Answer> receive(std::uint32_t rank);

  // SIGKILL; the moment, steady clock.
  std::int64_t kill_rank(std::uint32_t rank);
  // A new process for a killed rank.
  Status replace_rank(std::uint32_t rank);

  [[nodiscard]] Control& control() { return control_; }
  [[nodiscard]] const Workload& work() const { return options_.work; }
  [[nodiscard]] const std::string& network_form() const { return network_.form; }
  [[nodiscard]] const NodeDaemon& daemon(std::uint32_t node) const { return daemons_[node]; }

 private:
  struct Rank {
    Child process;
    ipc::UniqueFd channel;
  };

  Cluster(ClusterOptions options, TempDir folder, Network network, Control control)
      : options_(std::move(options)),
        folder_(std::move(folder)),
        network_(std::move(network)),
        control_(std::move(control)) {}

  Status start_rank(std::uint32_t rank);
  Result<Answer> read_answer(std::uint32_t rank);
  Status wait_readable(std::vector<bool>& waiting, ipc::Deadline deadline, const Watch& watch,
                       std::vector<std::uint32_t>& ready);
  Status gather(std::vector<Answer>& answers, const Watch& watch);
  [[nodiscard]] ipc::Deadline deadline() const;
  [[nodiscard]] Status explain(const Status& status);

  ClusterOptions options_;
  TempDir folder_;
  Network network_;
  Control control_;
  std::vector<NodeDaemon> daemons_;
  std::vector<Rank> ranks_;
};

}  // namespace railhead::bench
