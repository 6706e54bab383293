// shmwin and shmnt, the bound of a direct-store design and not a peer: the sender stores rows into the receiver's
// shared window, combine reads them there. No flow control, no validation; shmnt uses non-temporal stores.
#include <atomic>
#include <cstring>

#include "tools/peers/moe_exchange.hpp"
#include "tools/peers/process.hpp"
#include "tools/peers/row_copy.hpp"

namespace railhead::peers {
namespace {

constexpr std::size_t kLine = 64;

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

// One word per line, so that writers do not share lines. {round 32 | rows 32} or a round number.
struct alignas(kLine) Flag {
  std::atomic<std::uint64_t> word;
};

// One rank's window: a region of rows and descriptions per source, and the flags that the sources raise.
struct Window {
  std::byte* rows = nullptr;
  std::int32_t* infos = nullptr;
  Flag* arrived = nullptr;  // by source: its rows of this round are here
  Flag* ready = nullptr;    // by owner: rows that the owner holds may be pulled
};

class DirectStore final : public MoeExchange {
 public:
  DirectStore(const MoeShape& shape, bool stream, MPI_Comm node) : MoeExchange(shape), stream_(stream), node_(node) {
    const auto ranks = static_cast<std::size_t>(shape.ranks);
    const std::size_t rows = ranks * shape.tokens;
    const std::size_t infos_at = rows * shape.row_bytes();
    const std::size_t arrived_at = infos_at + round_up(rows * shape.info_words() * sizeof(std::int32_t));
    const std::size_t ready_at = arrived_at + ranks * sizeof(Flag);
    const std::size_t bytes = ready_at + ranks * sizeof(Flag) + kLine;

    void* own = nullptr;
    MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, node_, &own, &window_);
    std::memset(own, 0, bytes);  // also brings the pages in
    for (int rank = 0; rank < shape.ranks; ++rank) {
      MPI_Aint size = 0;
      int unit = 0;
      void* base = nullptr;
      MPI_Win_shared_query(window_, rank, &size, &unit, &base);
      // MPI promises no alignment; streaming stores need it.
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      auto* start = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(base)));
      windows_.push_back({start, reinterpret_cast<std::int32_t*>(start + infos_at),
                          reinterpret_cast<Flag*>(start + arrived_at), reinterpret_cast<Flag*>(start + ready_at)});
    }
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    MPI_Barrier(node_);
  }

  ~DirectStore() override {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
    MPI_Comm_free(&node_);
  }

  void dispatch(const Bf16* x, const bench::Routing& routing) override {
    ++round_;
    plan_.build(shape_, routing);
    // Each starts with itself and goes on round the circle: no two write into one window at the same time.
    for (int step = 0; step < shape_.ranks; ++step) store_rows(x, routing, (shape_.rank + step) % shape_.ranks);
    received_.assign(static_cast<std::size_t>(shape_.ranks), 0);
    for (int source = 0; source < shape_.ranks; ++source) {
      const std::atomic<std::uint64_t>& word = windows_[shape_.rank].arrived[source].word;
      unsigned spins = 0;
      std::uint64_t seen = 0;
      // acquire: pairs with the release in store_rows, the rows are visible.
      while ((seen = word.load(std::memory_order_acquire)) >> 32 != round_) relax(spins);
      received_[source] = static_cast<std::uint32_t>(seen);
    }
  }

  void combine(Bf16* y) override {
    for (int home = 0; home < shape_.ranks; ++home) {
      // release: what the experts wrote here is visible before the word.
      windows_[home].ready[shape_.rank].word.store(round_, std::memory_order_release);
    }
    for (int owner = 0; owner < shape_.ranks; ++owner) {
      unsigned spins = 0;
      // acquire: pairs with the release above.
      while (windows_[shape_.rank].ready[owner].word.load(std::memory_order_acquire) != round_) relax(spins);
    }
    for (std::uint32_t token = 0; token < shape_.tokens; ++token) sum_token(y, token);
  }

  [[nodiscard]] std::size_t received_rows() const override {
    std::size_t rows = 0;
    for (const std::uint32_t count : received_) rows += count;
    return rows;
  }

  [[nodiscard]] bool received_is_right() const override {
    for (int source = 0; source < shape_.ranks; ++source) {
      for (std::uint32_t i = 0; i < received_[source]; ++i) {
        const std::size_t place = index(source, static_cast<int>(i));
        const auto token = static_cast<std::uint32_t>(windows_[shape_.rank].infos[place * shape_.info_words()]);
        if (!row_is(row(shape_.rank, place), shape_.hidden, source, token)) return false;
      }
    }
    return true;
  }

  [[nodiscard]] float gain(std::uint32_t token) const override { return static_cast<float>(plan_.rows_of(token)); }

 private:
  [[nodiscard]] std::size_t index(int source, int slot) const {
    return static_cast<std::size_t>(source) * shape_.tokens + static_cast<std::size_t>(slot);
  }
  [[nodiscard]] const Bf16* row(int owner, std::size_t place) const {
    return reinterpret_cast<const Bf16*>(windows_[owner].rows + place * shape_.row_bytes());
  }

  void store_rows(const Bf16* x, const bench::Routing& routing, int to) {
    Window& window = windows_[to];
    for (std::uint32_t token = 0; token < shape_.tokens; ++token) {
      const int slot = plan_.slot(token, to);
      if (slot < 0) continue;
      const std::size_t place = index(shape_.rank, slot);
      const auto* from = reinterpret_cast<const std::byte*>(x + std::size_t{token} * shape_.hidden);
      std::byte* target = window.rows + place * shape_.row_bytes();
      if (stream_) {
        stream_row(target, from, shape_.row_bytes());
      } else {
        copy_row(target, from, shape_.row_bytes());
      }
      RankPlan::describe(shape_, routing, token, to, window.infos + place * shape_.info_words());
    }
    if (stream_) stream_fence();
    // release: the rows before the word (streamed ones by the fence).
    window.arrived[shape_.rank].word.store(round_ << 32 | static_cast<std::uint32_t>(plan_.counts()[to]),
                                           std::memory_order_release);
  }

  void sum_token(Bf16* y, std::uint32_t token) {
    rows_.clear();
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      const int slot = plan_.slot(token, rank);
      if (slot >= 0) rows_.push_back(row(rank, index(shape_.rank, slot)));
    }
    Bf16* out = &y[std::size_t{token} * shape_.hidden];
    if (rows_.empty()) {
      std::memset(out, 0, shape_.row_bytes());
    } else {
      sum_rows(out, rows_, {}, shape_.hidden);
    }
  }

  const bool stream_;
  MPI_Comm node_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<Window> windows_;
  RankPlan plan_;
  std::uint64_t round_ = 0;
  std::vector<std::uint32_t> received_;  // rows by source
  std::vector<const Bf16*> rows_;
};

}  // namespace

std::unique_ptr<MoeExchange> make_window(const MoeShape& shape, bool stream) {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int size = 0;
  MPI_Comm_size(node, &size);
  int all_here = size == shape.ranks ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all_here, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all_here == 1) return std::make_unique<DirectStore>(shape, stream, node);
  MPI_Comm_free(&node);
  return nullptr;
}

}  // namespace railhead::peers
