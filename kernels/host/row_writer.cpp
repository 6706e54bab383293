#include "kernels/host/row_writer.hpp"

#include <cstring>

namespace railhead::kernels {

RowWriter::RowWriter(const ExpertMap& map, std::uint16_t domain, const Route& route, std::span<Output> outputs,
                     std::uint32_t row_bytes, StoreMode mode, std::vector<void*>& targets)
    : map_(&map),
      domain_(domain),
      route_(&route),
      outputs_(outputs),
      row_bytes_(row_bytes),
      mode_(mode),
      targets_(&targets) {
  targets.reserve(route.topk);  // write() cannot fail
}

void RowWriter::write(std::uint32_t source, std::uint32_t token, const RowUse* uses, std::uint32_t count,
                      const std::byte* payload, const std::byte* side) {
  targets_->clear();
  if (route_->layout == ipc::Layout::rank) {
    by_rank(source, token, uses, count, side);
  } else {
    by_expert(source, token, uses, count, side);
  }
  copy_row_multi(targets_->data(), targets_->size(), payload, row_bytes_, mode_);
}

std::uint64_t RowWriter::begin_row(std::uint32_t local_rank, std::uint64_t row, std::uint32_t source,
                                   std::uint32_t token, const RowUse& first, const std::byte* side) {
  Output& out = outputs_[local_rank];
  ++out.written;
  targets_->push_back(out.rows + row * row_bytes_);
  *out.fields.rank(out.meta, row) = static_cast<std::int32_t>(source);
  *out.fields.token(out.meta, row) = static_cast<std::int32_t>(token);
  *out.fields.slot(out.meta, row) = first.slot;
  if (out.fields.side_bytes() != 0) std::memcpy(out.fields.side(out.meta, row), side, out.fields.side_bytes());
  return row;
}

void RowWriter::by_rank(std::uint32_t source, std::uint32_t token, const RowUse* uses, std::uint32_t count,
                        const std::byte* side) {
  for (std::uint32_t i = 0; i < count;) {
    const RowUse& first = uses[i];
    const Output& out = outputs_[first.local_rank];
    const std::uint32_t rank = map_->ranks_in(domain_)[first.local_rank];
    const std::uint32_t first_expert = map_->first_dense(rank);
    const std::uint64_t row =
        begin_row(first.local_rank, route_->rank_bases.base(source, first.local_rank) + first.rank_ordinal, source,
                  token, first, side);
    std::int32_t* const ids = out.fields.ids(out.meta, row);
    float* const weights = out.fields.id_weights(out.meta, row);
    std::uint32_t used = 0;
    std::uint16_t slot = first.slot;
    float sum = first.weight;
    for (; i < count && uses[i].local_rank == first.local_rank; ++i, ++used) {
      ids[used] = static_cast<std::int32_t>(uses[i].expert - first_expert);
      weights[used] = uses[i].weight;
      if (used != 0) sum += uses[i].weight;
      if (uses[i].slot < slot) slot = uses[i].slot;
    }
    for (; used < out.fields.topk(); ++used) {
      ids[used] = -1;
      weights[used] = 0;
    }
    *out.fields.slot(out.meta, row) = slot;
    *out.fields.weight(out.meta, row) = sum;
  }
}

void RowWriter::by_expert(std::uint32_t source, std::uint32_t token, const RowUse* uses, std::uint32_t count,
                          const std::byte* side) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const RowUse& use = uses[i];
    const Output& out = outputs_[use.local_rank];
    const std::uint64_t row = begin_row(
        use.local_rank, route_->expert_bases.base(source, use.expert) + use.expert_ordinal, source, token, use, side);
    *out.fields.weight(out.meta, row) = use.weight;
  }
}

}  // namespace railhead::kernels
