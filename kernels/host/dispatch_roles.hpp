// The three roles of a rank in one dispatch: send tokens to other domains, write its own tokens in its domain, forward
// what arrived from other domains. Each is stepped under the group lock; none waits.
#pragma once

#include <cstdint>
#include <vector>

#include "ipc/status.hpp"
#include "ipc/wire.hpp"
#include "kernels/host/chunk_writer.hpp"
#include "kernels/host/rail_port.hpp"
#include "kernels/host/route.hpp"
#include "kernels/host/row_writer.hpp"
#include "kernels/host/step.hpp"

namespace railhead::kernels {

// What the caller gave: rows and side data, by token.
struct TokenData {
  const std::byte* x = nullptr;
  std::uint64_t x_pitch = 0;
  const std::byte* side = nullptr;
  std::uint64_t side_pitch = 0;

  [[nodiscard]] const std::byte* row(std::uint32_t token) const { return x + token * x_pitch; }
  [[nodiscard]] const std::byte* side_of(std::uint32_t token) const {
    return side == nullptr ? nullptr : side + token * side_pitch;
  }
};

// What is the same for all chunks of one operation.
struct ChunkForm {
  std::uint64_t op = 0;
  std::uint32_t epoch = 0;
  ipc::DispatchRecordLayout record{0, 0, 0};
  std::uint32_t topk = 0;        // of the group: room for placements in a record
  std::uint32_t side_bytes = 0;  // of this operation
  std::uint32_t row_bytes = 0;
};

// Home side of one dispatch ring: packs this rank's tokens for one (other domain, channel).
class SendRole {
 public:
  SendRole(const ipc::RingEnd& ring, std::uint32_t tx) : ring_(ring), chunks_(tx) {}
  Step step(const ChunkForm& form, const Plan& plan, const TokenData& data, RailPort& port);
  [[nodiscard]] const ipc::RingEnd& ring() const { return ring_; }

 private:
  void append(const ChunkForm& form, const Plan& plan, const TokenData& data, const Run& run, std::byte* record) const;

  ipc::RingEnd ring_;
  ChunkWriter chunks_;
};

// This rank's tokens for its own domain, one channel.
class LocalRole {
 public:
  explicit LocalRole(std::uint32_t channel) : channel_(channel) {}
  // uses: scratch.
  Step step(std::uint32_t rank, std::uint16_t domain, const Plan& plan, const TokenData& data, RowWriter& writer,
            std::vector<RowUse>& uses);

 private:
  std::uint32_t channel_;
  std::size_t next_ = 0;
};

// Forwarder side of one dispatch ring: checks every record of (home, channel) against the home's counts, writes its
// rows, and keeps what combine needs.
class ForwardRole {
 public:
  // expected: records that the home's slice promises for this channel.
  ForwardRole(const ipc::RingEnd& ring, std::uint32_t rx, std::uint32_t expected, const ExpertMap& map);

  // A chunk that breaks a rule is an error of its home; the message names it. kept may be null: the route has them.
  Result<Step> step(const ChunkForm& form, const ExpertMap& map, const Route& route, RailPort& port, RowWriter& writer,
                    ForwardTokens* kept);
  [[nodiscard]] const ipc::RingEnd& ring() const { return ring_; }
  [[nodiscard]] std::uint32_t taken() const { return taken_; }
  [[nodiscard]] std::uint32_t expected() const { return expected_; }

 private:
  Result<void> check_chunk(const ChunkForm& form, const ipc::ChunkHeader& header) const;
  Result<void> take(const ChunkForm& form, const ExpertMap& map, const Route& route, const std::byte* record,
                    RowWriter& writer, ForwardTokens* kept);
  Result<void> check_use(const Route& route, const ipc::PlacementRecord& placement, const ExpertHome& home);
  [[nodiscard]] Status broken(const std::string& what) const;

  ipc::RingEnd ring_;
  std::uint32_t rx_;
  std::uint32_t expected_;
  std::uint32_t taken_ = 0;
  std::uint32_t in_chunk_ = 0;             // records of the current chunk already taken
  std::int64_t last_token_ = -1;           // tokens rise strictly in a ring
  std::vector<std::int64_t> last_expert_;  // last ordinal per dense expert: rises strictly
  std::vector<std::int64_t> last_rank_;    // last ordinal per local rank: rises strictly from token to token
  std::vector<RowUse> uses_;
};

// Terms of combine for one token, from its uses: one per row.
void resolve_terms(const Route& route, std::uint32_t source, const RowUse* uses, std::uint32_t count,
                   std::vector<ForwardTerm>& out);

}  // namespace railhead::kernels
