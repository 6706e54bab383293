// A rank's end of its rail: slots to fill and slots that arrived. Sequences are private and run on over operations.
// One thread at a time (the group lock).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "ipc/layout/rail_words.hpp"
#include "ipc/layout/rings.hpp"
#include "ipc/layout/shape.hpp"
#include "ipc/wire.hpp"

namespace railhead::kernels {

class RailPort {
 public:
  // `rail` is the mapped rail segment; `bell` wakes the proxy if it sleeps. Both outlive the port.
  RailPort(const ipc::GroupShape& shape, std::uint32_t rank, std::byte* rail, ipc::RailWordsClient words,
           std::function<void()> bell);

  [[nodiscard]] const ipc::RailRings& rings() const noexcept { return rings_; }
  // Records of this size that go into one chunk.
  [[nodiscard]] std::uint32_t chunk_records(std::uint32_t stride) const noexcept {
    return std::max(1U, chunk_record_bytes_ / stride);
  }

  // The next slot of a tx ring, or null while there is no credit for it. Fill it, then submit.
  [[nodiscard]] std::byte* tx_slot(std::uint32_t tx) const;
  // Completes the header (magic, version, sequence, checksum) in the slot and hands it to the daemon. False when the
  // submission ring is full: try again later, the slot keeps its content.
  bool submit(std::uint32_t tx, ipc::ChunkHeader header);

  // The oldest arrived slot that was not released, or null. The header comes back as a private, checked copy; a chunk
  // that is not what it says is an error of the peer.
  struct Chunk {
    ipc::ChunkHeader header;
    const std::byte* records = nullptr;
  };
  [[nodiscard]] Result<Chunk> rx_chunk(std::uint32_t rx) const;
  [[nodiscard]] bool rx_ready(std::uint32_t rx) const { return words_.arrived(rx) > consumed_[rx]; }
  // The slot was consumed: its credit goes back with a flush, half a ring of credits at a time.
  void release(std::uint32_t rx);

  // Sends an operation header to the n-th other domain; the slot content must be in place (header_slot).
  [[nodiscard]] std::byte* header_slot(std::uint32_t other_domain, std::uint64_t op) const {
    return rail_ + layout_.header_slot(other_domain, op);
  }
  bool submit_header(std::uint32_t other_domain, std::uint64_t op, std::uint32_t slice_words);

  // Hands over owed credits and rings the bell if anything was submitted since the last flush.
  void flush();

  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }

 private:
  bool push(const ipc::RailRequest& request);

  ipc::RailRings rings_;
  ipc::RailSegmentLayout layout_;
  std::uint32_t slots_;
  std::uint32_t chunk_record_bytes_;
  std::uint32_t batch_;  // credits handed over at a time
  std::byte* rail_;
  ipc::RailWordsClient words_;
  std::function<void()> bell_;
  std::vector<std::uint64_t> submitted_;  // per tx ring
  std::vector<std::uint64_t> consumed_;   // per rx ring
  std::vector<std::uint64_t> returned_;   // per rx ring: credits handed over
  std::vector<std::uint32_t> owed_;       // rx rings whose credit is not handed over yet
  std::vector<bool> owes_;                // per rx ring: is in owed_
  bool rang_ = true;                      // nothing submitted since the last bell
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace railhead::kernels
