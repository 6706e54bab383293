// What a run's samples come to.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/ep-bench/rank/control.hpp"
#include "tools/ep-bench/workload.hpp"

namespace railhead::bench {

struct Times {
  double median = 0;
  double p99 = 0;
};

class Summary {
 public:
  explicit Summary(std::uint32_t ranks) : last_dispatch_(ranks), last_combine_(ranks) {}

  // The samples of all ranks in one round, rank order.
  void add(const std::vector<RoundSample>& round);

  // Milliseconds, the slowest rank of each round.
  [[nodiscard]] const std::vector<double>& dispatch_ms() const { return dispatch_ms_; }
  [[nodiscard]] const std::vector<double>& combine_ms() const { return combine_ms_; }
  [[nodiscard]] const std::vector<double>& total_ms() const { return total_ms_; }
  [[nodiscard]] static Times times(const std::vector<double>& samples);

  [[nodiscard]] std::size_t rounds() const { return total_ms_.size(); }
  // Means over ranks and rounds.
  [[nodiscard]] double rows() const { return mean(rows_); }
  [[nodiscard]] double received_mb() const { return mean(received_bytes_) / 1e6; }
  [[nodiscard]] double rail_mb() const { return mean(rail_bytes_) / 1e6; }
  // Milliseconds of a rank's operations until every rank had called, and from then on.
  [[nodiscard]] double dispatch_wait_ms() const { return mean(dispatch_wait_ns_) / 1e6; }
  [[nodiscard]] double dispatch_transfer_ms() const { return mean(dispatch_transfer_ns_) / 1e6; }
  [[nodiscard]] double combine_wait_ms() const { return mean(combine_wait_ns_) / 1e6; }
  [[nodiscard]] double combine_transfer_ms() const { return mean(combine_transfer_ns_) / 1e6; }
  // How often each rank was the last to call.
  [[nodiscard]] const std::vector<std::uint64_t>& last_dispatch() const { return last_dispatch_; }
  [[nodiscard]] const std::vector<std::uint64_t>& last_combine() const { return last_combine_; }

 private:
  [[nodiscard]] double mean(double sum) const { return samples_ == 0 ? 0 : sum / static_cast<double>(samples_); }

  std::vector<double> dispatch_ms_, combine_ms_, total_ms_;
  std::size_t samples_ = 0;
  double rows_ = 0, received_bytes_ = 0, rail_bytes_ = 0;
  double dispatch_wait_ns_ = 0, dispatch_transfer_ns_ = 0, combine_wait_ns_ = 0, combine_transfer_ns_ = 0;
  std::vector<std::uint64_t> last_dispatch_, last_combine_;
};

// For people. `form` says how the nodes are joined.
std::string table(const Summary& summary, const Workload& work, const std::string& form, bool verified);
nlohmann::json to_json(const Summary& summary, const Workload& work, const std::string& form, bool verified);

}  // namespace railhead::bench
