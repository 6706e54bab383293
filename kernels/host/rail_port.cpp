#include "kernels/host/rail_port.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace railhead::kernels {

RailPort::RailPort(const ipc::GroupShape& shape, std::uint32_t rank, std::byte* rail, ipc::RailWordsClient words,
                   std::function<void()> bell)
    : rings_(shape, rank),
      layout_(shape, rank),
      slots_(shape.params().ring_slots),
      chunk_record_bytes_(shape.chunk_record_bytes()),
      batch_(std::max(1U, slots_ / 2)),
      rail_(rail),
      words_(words),
      bell_(std::move(bell)),
      submitted_(rings_.tx_count()),
      consumed_(rings_.rx_count()),
      returned_(rings_.rx_count()),
      owes_(rings_.rx_count()) {}

std::byte* RailPort::tx_slot(std::uint32_t tx) const {
  if (submitted_[tx] - words_.granted(tx) >= slots_) return nullptr;
  return rail_ + layout_.tx_slot(tx, submitted_[tx]);
}

bool RailPort::submit(std::uint32_t tx, ipc::ChunkHeader header) {
  header.magic = ipc::kChunkMagic;
  header.version = ipc::kWireVersion;
  header.sequence = submitted_[tx];
  ipc::seal(header);
  std::memcpy(rail_ + layout_.tx_slot(tx, submitted_[tx]), &header, sizeof(header));
  if (!push({ipc::RailVerb::chunk, static_cast<std::uint16_t>(tx), static_cast<std::uint32_t>(submitted_[tx]),
             header.bytes})) {
    return false;
  }
  ++submitted_[tx];
  bytes_sent_ += header.bytes;
  return true;
}

Result<RailPort::Chunk> RailPort::rx_chunk(std::uint32_t rx) const {
  if (!rx_ready(rx)) return Chunk{};
  const std::byte* const slot = rail_ + layout_.rx_slot(rx, consumed_[rx]);
  Chunk chunk;
  std::memcpy(&chunk.header, slot, sizeof(chunk.header));
  if (auto good = ipc::check(chunk.header, layout_.slot_bytes()); !good) return fail(good.error());
  if (chunk.header.sequence != consumed_[rx]) {
    return fail(Code::protocol, "chunk with sequence " + std::to_string(chunk.header.sequence) + ", expected " +
                                    std::to_string(consumed_[rx]));
  }
  chunk.records = slot + sizeof(chunk.header);
  return chunk;
}

void RailPort::release(std::uint32_t rx) {
  // A credit costs the daemons a write of its own. A sender without one has filled the whole ring, so the batch always
  // comes together (docs/progress.md, rule 13).
  if (++consumed_[rx] - returned_[rx] < batch_ || owes_[rx]) return;
  owes_[rx] = true;
  owed_.push_back(rx);
}

bool RailPort::submit_header(std::uint32_t other_domain, std::uint64_t op, std::uint32_t slice_words) {
  return push(
      {ipc::RailVerb::header, static_cast<std::uint16_t>(other_domain), static_cast<std::uint32_t>(op), slice_words});
}

void RailPort::flush() {
  while (!owed_.empty()) {
    const std::uint32_t rx = owed_.back();
    if (!push({ipc::RailVerb::credit, static_cast<std::uint16_t>(rx), 0, consumed_[rx]})) break;
    returned_[rx] = consumed_[rx];
    owes_[rx] = false;
    owed_.pop_back();
  }
  if (!rang_) {
    bell_();
    rang_ = true;
  }
}

bool RailPort::push(const ipc::RailRequest& request) {
  if (!words_.submit(request)) return false;
  rang_ = false;
  return true;
}

}  // namespace railhead::kernels
