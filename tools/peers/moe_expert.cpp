// expert: one row per (token, expert); pack, Alltoallv, unpermute to expert-major order; back the same way, weighted.
#include <cstring>

#include "tools/peers/moe_exchange.hpp"

namespace railhead::peers {
namespace {

class Expert final : public MoeExchange {
 public:
  explicit Expert(const MoeShape& shape)
      : MoeExchange(shape),
        row_(shape.row_bytes()),
        send_counts_(static_cast<std::size_t>(shape.ranks)),
        receive_counts_(static_cast<std::size_t>(shape.ranks)),
        counts_(shape.experts),
        send_rows_(std::size_t{shape.tokens} * shape.top_k * shape.hidden) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      experts_of_.push_back(static_cast<int>(shape.first_expert(rank + 1) - shape.first_expert(rank)));
      local_everywhere_.push_back(static_cast<int>(shape.local_experts()));
    }
    prefix_sums(experts_of_, expert_at_);
    prefix_sums(local_everywhere_, local_at_);
    their_counts_.resize(static_cast<std::size_t>(local_at_.back()));
  }

  void dispatch(const Bf16* x, const bench::Routing& routing) override {
    routing_ = &routing;
    count(routing);
    MPI_Alltoallv(counts_.data(), experts_of_.data(), expert_at_.data(), MPI_INT, their_counts_.data(),
                  local_everywhere_.data(), local_at_.data(), MPI_INT, MPI_COMM_WORLD);
    lay_out();
    pack(x, routing);
    const std::vector<int> send = through_mpi(send_counts_);
    const std::vector<int> receive = through_mpi(receive_counts_);
    MPI_Alltoallv(send_rows_.data(), send.data(), send_at_.data(), row_.type(), receive_rows_.data(), receive.data(),
                  receive_at_.data(), row_.type(), MPI_COMM_WORLD);
    for_each_received([&](int i) { std::memcpy(expert_row(permutation_[i]), wire_row(i), shape_.row_bytes()); });
  }

  void combine(Bf16* y) override {
    for_each_received([&](int i) { std::memcpy(wire_row(i), expert_row(permutation_[i]), shape_.row_bytes()); });
    const std::vector<int> send = through_mpi(receive_counts_);
    const std::vector<int> receive = through_mpi(send_counts_);
    MPI_Alltoallv(receive_rows_.data(), send.data(), receive_at_.data(), row_.type(), send_rows_.data(), receive.data(),
                  send_at_.data(), row_.type(), MPI_COMM_WORLD);
    for (std::uint32_t token = 0; token < shape_.tokens; ++token) sum_token(y, token);
  }

  [[nodiscard]] std::size_t received_rows() const override { return static_cast<std::size_t>(receive_at_.back()); }

  // Rows have no description; that the weighted sums come out right shows that each went to its place and back.
  [[nodiscard]] bool received_is_right() const override { return true; }

  [[nodiscard]] float gain(std::uint32_t token) const override {
    float sum = 0;
    for (std::uint32_t k = 0; k < shape_.top_k; ++k) {
      const std::size_t at = std::size_t{token} * shape_.top_k + k;
      if (routing_->ids[at] >= 0) sum += routing_->weights[at];
    }
    return sum;
  }

 private:
  [[nodiscard]] std::vector<int> through_mpi(std::vector<int> counts) const {
    if (shape_.bypass_self) counts[shape_.rank] = 0;
    return counts;
  }

  void count(const bench::Routing& routing) {
    counts_.assign(shape_.experts, 0);
    for (const std::int64_t id : routing.ids) {
      if (id >= 0) ++counts_[static_cast<std::size_t>(id)];
    }
  }

  // Where rows go: send order is (expert), receive order (source, expert), and permutation_ maps it to (expert,
  // source).
  void lay_out() {
    const auto local = static_cast<int>(shape_.local_experts());
    std::vector<int> totals(shape_.local_experts(), 0);
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      send_counts_[rank] = receive_counts_[rank] = 0;
      for (int e = expert_at_[rank]; e < expert_at_[rank + 1]; ++e) send_counts_[rank] += counts_[e];
      for (int e = 0; e < local; ++e) {
        receive_counts_[rank] += their_counts_[rank * local + e];
        totals[e] += their_counts_[rank * local + e];
      }
    }
    prefix_sums(send_counts_, send_at_);
    prefix_sums(receive_counts_, receive_at_);
    grow(receive_at_.back());
    std::vector<int> next;
    prefix_sums(totals, next);
    int row = 0;
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      for (int e = 0; e < local; ++e) {
        for (int n = 0; n < their_counts_[rank * local + e]; ++n) permutation_[row++] = next[e]++;
      }
    }
  }

  // Buffers only grow: after the warm-up rounds nothing is allocated.
  void grow(int rows) {
    if (permutation_.size() >= static_cast<std::size_t>(rows)) return;
    const std::size_t capacity = static_cast<std::size_t>(rows) * 9 / 8;
    permutation_.resize(capacity);
    receive_rows_.resize(capacity * shape_.hidden);
    expert_rows_.resize(capacity * shape_.hidden);
  }

  void pack(const Bf16* x, const bench::Routing& routing) {
    prefix_sums(counts_, next_);
    place_.assign(routing.ids.size(), -1);
    for (std::size_t i = 0; i < routing.ids.size(); ++i) {
      if (routing.ids[i] < 0) continue;
      place_[i] = next_[static_cast<std::size_t>(routing.ids[i])]++;
      std::memcpy(sent_row(place_[i]), &x[i / shape_.top_k * shape_.hidden], shape_.row_bytes());
    }
  }

  template <class Visit>
  void for_each_received(Visit visit) {
    for (int i = 0; i < receive_at_.back(); ++i) {
      const bool own = i >= receive_at_[shape_.rank] && i < receive_at_[shape_.rank + 1];
      if (!(own && shape_.bypass_self)) visit(i);
    }
  }

  // Rows to and from itself never leave their final place if they bypass MPI.
  [[nodiscard]] Bf16* sent_row(int place) {
    const int own = place - send_at_[shape_.rank];
    if (shape_.bypass_self && own >= 0 && own < send_counts_[shape_.rank]) {
      return expert_row(permutation_[receive_at_[shape_.rank] + own]);
    }
    return &send_rows_[static_cast<std::size_t>(place) * shape_.hidden];
  }
  [[nodiscard]] Bf16* wire_row(int i) { return &receive_rows_[static_cast<std::size_t>(i) * shape_.hidden]; }
  [[nodiscard]] Bf16* expert_row(int i) { return &expert_rows_[static_cast<std::size_t>(i) * shape_.hidden]; }

  void sum_token(Bf16* y, std::uint32_t token) {
    rows_.clear();
    weights_.clear();
    for (std::uint32_t k = 0; k < shape_.top_k; ++k) {
      const std::size_t at = std::size_t{token} * shape_.top_k + k;
      if (place_[at] < 0) continue;
      rows_.push_back(sent_row(place_[at]));
      weights_.push_back(routing_->weights[at]);
    }
    Bf16* out = &y[std::size_t{token} * shape_.hidden];
    if (rows_.empty()) {
      std::memset(out, 0, shape_.row_bytes());
    } else {
      sum_rows(out, rows_, weights_, shape_.hidden);
    }
  }

  MpiBlock row_;
  const bench::Routing* routing_ = nullptr;
  std::vector<int> experts_of_, expert_at_;        // experts per rank
  std::vector<int> local_everywhere_, local_at_;   // own experts, once per source
  std::vector<int> send_counts_, receive_counts_;  // rows per rank
  std::vector<int> send_at_, receive_at_;
  std::vector<int> counts_, their_counts_;  // own rows per expert; others' rows per (source, local expert)
  std::vector<int> next_, place_, permutation_;
  bench::Tensor<Bf16> send_rows_, receive_rows_, expert_rows_;
  std::vector<const Bf16*> rows_;
  std::vector<float> weights_;
};

}  // namespace

std::unique_ptr<MoeExchange> make_expert(const MoeShape& shape) {
  return std::make_unique<Expert>(shape);
}

}  // namespace railhead::peers
