// The two roles of a rank in one combine: as home, sum its own tokens from the rows of its domain and the partial sums
// of others; as forwarder, sum the rows of foreign tokens in this domain and send one partial per token back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ipc/status.hpp"
#include "ipc/wire.hpp"
#include "kernels/host/dispatch_roles.hpp"
#include "kernels/host/rail_port.hpp"
#include "kernels/host/reduce.hpp"
#include "kernels/host/route.hpp"
#include "kernels/host/step.hpp"

namespace railhead::kernels {

// What is the same for all tokens of one combine.
struct CombineForm {
  std::uint64_t op = 0;
  std::uint32_t epoch = 0;
  DataType element = DataType::bf16;  // rows and y
  DataType wire = DataType::bf16;     // partial sums
  bool weighted = false;
  std::uint32_t hidden = 0;
  std::uint32_t stride = 0;  // of a combine record
  std::byte* y = nullptr;
  std::uint64_t y_pitch = 0;
  StoreMode y_mode = StoreMode::temporal;

  [[nodiscard]] std::uint32_t row_bytes() const { return hidden * static_cast<std::uint32_t>(size_of(element)); }
};

// Where the rows of one local rank lie.
struct Input {
  const std::byte* rows = nullptr;
  std::uint32_t pulled = 0;  // the roles count here
};

// Rows and weights of one group of terms; capacity is kept from token to token.
class TermList {
 public:
  void clear();
  // Counts the term's row as pulled.
  void add(const CombineForm& form, std::span<Input> inputs, const ForwardTerm& term);
  [[nodiscard]] ReduceGroup group(const CombineForm& form) const;
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

 private:
  std::vector<const void*> rows_;
  std::vector<float> weights_;
};

// What is worked out for one token; kept from token to token and from operation to operation for its capacity alone.
struct TokenScratch {
  std::vector<RowUse> uses;
  std::vector<ForwardTerm> terms;
  TermList list;
  std::vector<ReduceGroup> groups;
  std::vector<void*> targets;
};

// Home side: tokens of one channel, in order.
class HomeRole {
 public:
  // rings: rx index of the partial sums of this channel by domain; the own domain's entry is unused.
  HomeRole(std::uint32_t rank, std::uint16_t domain, std::uint32_t channel, std::span<const std::uint32_t> rings);

  // inputs: by local rank.
  Result<Step> step(const CombineForm& form, const Route& route, RailPort* port, std::span<Input> inputs,
                    TokenScratch& scratch);
  // For diagnostics: the domain whose partial is missing, or the own one.
  [[nodiscard]] std::uint16_t waiting_for() const { return waiting_for_; }
  [[nodiscard]] std::uint32_t token() const { return token_; }

 private:
  // The partial sums of one domain.
  struct Source {
    std::uint32_t ring = 0;
    std::uint32_t in_chunk = 0;     // records of the oldest chunk already used
    std::uint32_t chunk_of = 0;     // records in that chunk
    const void* partial = nullptr;  // of the current token
  };

  // True when all partials of the token are there.
  Result<bool> gather(const CombineForm& form, const Route& route, RailPort* port);
  Result<bool> find_partial(const CombineForm& form, std::uint16_t domain, RailPort& port);
  void sum(const CombineForm& form, const Route& route, std::span<Input> inputs, TokenScratch& scratch);
  void advance(const Route& route, RailPort* port);

  std::uint32_t rank_;
  std::uint16_t domain_;
  std::uint32_t channel_;
  std::vector<Source> sources_;  // by domain
  std::uint32_t token_ = 0;      // next token, relative to the channel's first
  std::uint16_t waiting_for_ = 0;
};

// Forwarder side of one combine ring.
class ReturnRole {
 public:
  ReturnRole(const ipc::RingEnd& ring, std::uint32_t tx) : ring_(ring), chunks_(tx) {}
  Step step(const CombineForm& form, const ForwardTokens& kept, RailPort& port, std::span<Input> inputs);
  [[nodiscard]] const ipc::RingEnd& ring() const { return ring_; }

 private:
  void append(const CombineForm& form, const ForwardTokens& kept, std::size_t i, std::byte* record,
              std::span<Input> inputs);

  ipc::RingEnd ring_;
  ChunkWriter chunks_;
  std::size_t next_term_ = 0;  // first term of the next token
  TermList list_;
};

}  // namespace railhead::kernels
