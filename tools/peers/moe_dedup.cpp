// dedup: one row per (token, rank) with a description of its experts; pack, Alltoallv, and back.
#include <cstring>

#include "tools/peers/moe_exchange.hpp"

namespace railhead::peers {
namespace {

class Dedup final : public MoeExchange {
 public:
  explicit Dedup(const MoeShape& shape)
      : MoeExchange(shape),
        row_(shape.row_bytes()),
        info_(shape.info_words() * sizeof(std::int32_t)),
        receive_counts_(static_cast<std::size_t>(shape.ranks)),
        send_infos_(capacity() * shape.info_words()),
        receive_infos_(capacity() * shape.info_words()),
        send_rows_(capacity() * shape.hidden),
        receive_rows_(capacity() * shape.hidden) {}

  void dispatch(const Bf16* x, const bench::Routing& routing) override {
    plan_.build(shape_, routing);
    MPI_Alltoall(plan_.counts().data(), 1, MPI_INT, receive_counts_.data(), 1, MPI_INT, MPI_COMM_WORLD);
    prefix_sums(plan_.counts(), send_at_);
    prefix_sums(receive_counts_, receive_at_);
    received_ = static_cast<std::size_t>(receive_at_.back());
    pack(x, routing);
    MPI_Alltoallv(send_infos_.data(), plan_.counts().data(), send_at_.data(), info_.type(), receive_infos_.data(),
                  receive_counts_.data(), receive_at_.data(), info_.type(), MPI_COMM_WORLD);
    const std::vector<int> send = through_mpi(plan_.counts());
    const std::vector<int> receive = through_mpi(receive_counts_);
    MPI_Alltoallv(send_rows_.data(), send.data(), send_at_.data(), row_.type(), receive_rows_.data(), receive.data(),
                  receive_at_.data(), row_.type(), MPI_COMM_WORLD);
  }

  void combine(Bf16* y) override {
    const std::vector<int> send = through_mpi(receive_counts_);
    const std::vector<int> receive = through_mpi(plan_.counts());
    MPI_Alltoallv(receive_rows_.data(), send.data(), receive_at_.data(), row_.type(), send_rows_.data(), receive.data(),
                  send_at_.data(), row_.type(), MPI_COMM_WORLD);
    for (std::uint32_t token = 0; token < shape_.tokens; ++token) sum_token(y, token);
  }

  [[nodiscard]] std::size_t received_rows() const override { return received_; }

  [[nodiscard]] bool received_is_right() const override {
    for (int source = 0; source < shape_.ranks; ++source) {
      for (int i = receive_at_[source]; i < receive_at_[source + 1]; ++i) {
        const auto token = static_cast<std::uint32_t>(receive_infos_[std::size_t(i) * shape_.info_words()]);
        if (!row_is(&receive_rows_[std::size_t(i) * shape_.hidden], shape_.hidden, source, token)) return false;
      }
    }
    return true;
  }

  [[nodiscard]] float gain(std::uint32_t token) const override { return static_cast<float>(plan_.rows_of(token)); }

 private:
  // Rows that may come or go: every token to (or from) every rank.
  [[nodiscard]] std::size_t capacity() const {
    return std::size_t{shape_.tokens} * static_cast<std::size_t>(shape_.ranks);
  }

  [[nodiscard]] std::vector<int> through_mpi(std::vector<int> counts) const {
    if (shape_.bypass_self) counts[shape_.rank] = 0;
    return counts;
  }

  void pack(const Bf16* x, const bench::Routing& routing) {
    for (std::uint32_t token = 0; token < shape_.tokens; ++token) {
      for (int rank = 0; rank < shape_.ranks; ++rank) {
        const int slot = plan_.slot(token, rank);
        if (slot < 0) continue;
        RankPlan::describe(shape_, routing, token, rank,
                           &send_infos_[std::size_t(send_at_[rank] + slot) * shape_.info_words()]);
        const bool direct = shape_.bypass_self && rank == shape_.rank;
        Bf16* to = direct ? &receive_rows_[std::size_t(receive_at_[rank] + slot) * shape_.hidden]
                          : &send_rows_[std::size_t(send_at_[rank] + slot) * shape_.hidden];
        std::memcpy(to, &x[std::size_t{token} * shape_.hidden], shape_.row_bytes());
      }
    }
  }

  void sum_token(Bf16* y, std::uint32_t token) {
    rows_.clear();
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      const int slot = plan_.slot(token, rank);
      if (slot < 0) continue;
      const bool direct = shape_.bypass_self && rank == shape_.rank;
      rows_.push_back(direct ? &receive_rows_[std::size_t(receive_at_[rank] + slot) * shape_.hidden]
                             : &send_rows_[std::size_t(send_at_[rank] + slot) * shape_.hidden]);
    }
    Bf16* out = &y[std::size_t{token} * shape_.hidden];
    if (rows_.empty()) {
      std::memset(out, 0, shape_.row_bytes());
    } else {
      sum_rows(out, rows_, {}, shape_.hidden);
    }
  }

  MpiBlock row_;
  MpiBlock info_;
  RankPlan plan_;
  std::vector<int> receive_counts_, send_at_, receive_at_;
  std::vector<std::int32_t> send_infos_, receive_infos_;
  bench::Tensor<Bf16> send_rows_, receive_rows_;
  std::vector<const Bf16*> rows_;
  std::size_t received_ = 0;
};

}  // namespace

std::unique_ptr<MoeExchange> make_dedup(const MoeShape& shape) {
  return std::make_unique<Dedup>(shape);
}

}  // namespace railhead::peers
