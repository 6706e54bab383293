// Where the metadata of received rows lies in the receiver's metadata span: one array per field, so that what writers
// store is what the caller reads. Offsets follow from the capacity that the span was published with.
#pragma once

#include <cstdint>

#include "ipc/layout/align.hpp"
#include "ipc/wire.hpp"

namespace railhead::kernels {

class RowMeta {
 public:
  RowMeta() = default;
  // capacity: rows. Layout `rank` has topk local ids and weights per row, layout `expert` has none.
  RowMeta(std::uint64_t capacity, std::uint32_t topk, std::uint32_t side_bytes, ipc::Layout layout)
      : topk_(layout == ipc::Layout::rank ? topk : 0), side_bytes_(side_bytes) {
    token_ = ipc::align_up(capacity * 4, std::uint64_t{ipc::kCacheLine});
    slot_ = token_ * 2;
    weight_ = token_ * 3;
    ids_ = token_ * 4;
    const std::uint64_t uses = ipc::align_up(capacity * topk_ * 4, std::uint64_t{ipc::kCacheLine});
    id_weights_ = ids_ + uses;
    side_ = id_weights_ + uses;
    bytes_ = side_ + ipc::align_up(capacity * side_bytes, std::uint64_t{ipc::kCacheLine});
  }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t topk() const { return topk_; }
  [[nodiscard]] std::uint32_t side_bytes() const { return side_bytes_; }

  // Row `row` of each field; `base` is the start of the span.
  [[nodiscard]] std::int32_t* rank(std::byte* base, std::uint64_t row) const { return at<std::int32_t>(base, 0, row); }
  [[nodiscard]] std::int32_t* token(std::byte* base, std::uint64_t row) const {
    return at<std::int32_t>(base, token_, row);
  }
  [[nodiscard]] std::int32_t* slot(std::byte* base, std::uint64_t row) const {
    return at<std::int32_t>(base, slot_, row);
  }
  [[nodiscard]] float* weight(std::byte* base, std::uint64_t row) const { return at<float>(base, weight_, row); }
  [[nodiscard]] std::int32_t* ids(std::byte* base, std::uint64_t row) const {
    return at<std::int32_t>(base, ids_, row * topk_);
  }
  [[nodiscard]] float* id_weights(std::byte* base, std::uint64_t row) const {
    return at<float>(base, id_weights_, row * topk_);
  }
  [[nodiscard]] std::byte* side(std::byte* base, std::uint64_t row) const { return base + side_ + row * side_bytes_; }

 private:
  template <class T>
  static T* at(std::byte* base, std::uint64_t offset, std::uint64_t index) {
    return reinterpret_cast<T*>(base + offset) + index;
  }

  std::uint32_t topk_ = 0;
  std::uint32_t side_bytes_ = 0;
  std::uint64_t token_ = 0;
  std::uint64_t slot_ = 0;
  std::uint64_t weight_ = 0;
  std::uint64_t ids_ = 0;
  std::uint64_t id_weights_ = 0;
  std::uint64_t side_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace railhead::kernels
