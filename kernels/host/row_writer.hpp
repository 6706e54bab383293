// Writes one token's rows and their metadata into the outputs of this domain's ranks: the common end of the local and
// the forwarding half of dispatch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ipc/layout/shape.hpp"
#include "kernels/host/copy.hpp"
#include "kernels/host/route.hpp"
#include "kernels/host/row_meta.hpp"
#include "kernels/plan/placement.hpp"

namespace railhead::kernels {

// Where the rows of one local rank go in this operation; resolved from its span.
struct Output {
  std::byte* rows = nullptr;
  std::byte* meta = nullptr;
  RowMeta fields;
  std::uint32_t written = 0;  // the writer counts here
};

// One row-to-be, in terms of this domain.
struct RowUse {
  std::uint16_t local_rank;
  std::uint16_t expert;  // dense in the domain
  std::uint16_t slot;
  std::uint32_t expert_ordinal;
  std::uint32_t rank_ordinal;
  float weight;
};

class RowWriter {
 public:
  RowWriter() = default;
  // `outputs` by local rank, all resolved, and `targets`, scratch that nobody else uses during a write(), live as long
  // as the writer writes. The route's bases must be computed.
  RowWriter(const ExpertMap& map, std::uint16_t domain, const Route& route, std::span<Output> outputs,
            std::uint32_t row_bytes, StoreMode mode, std::vector<void*>& targets);

  // `uses` sorted by (local rank, expert), all within limits. Returns nothing: it cannot fail.
  void write(std::uint32_t source, std::uint32_t token, const RowUse* uses, std::uint32_t count,
             const std::byte* payload, const std::byte* side);

  // Rows written so far for a local rank.
  [[nodiscard]] std::uint32_t written(std::uint32_t local_rank) const { return outputs_[local_rank].written; }

 private:
  void by_rank(std::uint32_t source, std::uint32_t token, const RowUse* uses, std::uint32_t count,
               const std::byte* side);
  void by_expert(std::uint32_t source, std::uint32_t token, const RowUse* uses, std::uint32_t count,
                 const std::byte* side);
  std::uint64_t begin_row(std::uint32_t local_rank, std::uint64_t row, std::uint32_t source, std::uint32_t token,
                          const RowUse& first, const std::byte* side);

  const ExpertMap* map_ = nullptr;
  std::uint16_t domain_ = 0;
  const Route* route_ = nullptr;
  std::span<Output> outputs_;
  std::uint32_t row_bytes_ = 0;
  StoreMode mode_ = StoreMode::temporal;
  std::vector<void*>* targets_ = nullptr;  // places of the current token's rows
};

}  // namespace railhead::kernels
