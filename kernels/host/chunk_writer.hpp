// Packs the records of one tx ring into slots, as many to a slot as a chunk may hold, and submits full ones and the
// last. Shared by both roles that send.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ipc/wire.hpp"
#include "kernels/host/rail_port.hpp"
#include "kernels/host/step.hpp"

namespace railhead::kernels {

class ChunkWriter {
 public:
  explicit ChunkWriter(std::uint32_t tx) : tx_(tx) {}

  // `form`: the header but for what depends on the slot. append(i, record) writes the i-th of `total` records; it is
  // called once per record, in order.
  template <class Append>
  Step step(RailPort& port, const ipc::ChunkHeader& form, std::size_t total, Append&& append) {
    const std::uint32_t per_slot = port.chunk_records(form.stride);
    Step result = Step::blocked;
    for (std::uint32_t budget = kStepRecords; budget > 0; --budget) {
      if (next_ == total && filled_ == 0) return Step::done;
      std::byte* const slot = port.tx_slot(tx_);
      if (slot == nullptr) return result;
      if (next_ < total && filled_ < per_slot) {
        append(next_, slot + kHeader + filled_ * form.stride);
        ++next_;
        ++filled_;
        result = Step::progressed;
      }
      if (next_ < total && filled_ < per_slot) continue;
      ipc::ChunkHeader header = form;
      header.records = filled_;
      header.bytes = kHeader + filled_ * form.stride;
      if (!port.submit(tx_, header)) return result;
      filled_ = 0;
      result = Step::progressed;
    }
    return next_ == total && filled_ == 0 ? Step::done : Step::progressed;
  }

 private:
  static constexpr auto kHeader = static_cast<std::uint32_t>(sizeof(ipc::ChunkHeader));

  std::uint32_t tx_;
  std::size_t next_ = 0;      // record to append
  std::uint32_t filled_ = 0;  // records in the open slot
};

}  // namespace railhead::kernels
