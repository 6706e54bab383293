// Runs one case through the product and compares every row, count, id, weight, map and combined value with the plain
// reference model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "railhead/railhead.hpp"
#include "tests/reference/model.hpp"
#include "tests/reference/random_case.hpp"
#include "tests/support/cluster.hpp"

namespace railhead::test {

struct CaseSpec {
  std::vector<std::uint16_t> host_of_rank;
  std::uint32_t experts = 8;
  std::vector<std::uint16_t> rank_of_expert;  // empty = default blocks
  std::uint32_t topk = 2;
  std::uint32_t call_topk = 0;  // slots per token in a call; 0 = topk
  std::uint32_t hidden = 16;
  std::vector<std::uint32_t> tokens;  // per rank
  reference::NumberType type = reference::NumberType::bf16;
  reference::NumberType combine = reference::NumberType::bf16;  // of expert outputs and y
  reference::NumberType wire = reference::NumberType::bf16;
  reference::Layout layout = reference::Layout::rank;
  std::uint32_t align = 1;
  std::uint32_t side_bytes = 0;
  std::uint32_t channels = 2;
  std::uint32_t depth = 2;
  std::uint32_t ring_slots = 4;
  std::uint32_t chunk_bytes = 0;
  bool int32_ids = false;
  bool weights = true;            // given; else every weight is 1
  bool weighted = true;           // layout expert only
  std::uint32_t pitch_extra = 0;  // bytes between rows of x, side data and y
  std::uint32_t rounds = 1;
  std::uint64_t seed = 1;
  reference::Oddities odd;

  [[nodiscard]] std::string describe() const;
};

// The usual case with these ranks and tokens.
CaseSpec spec_of(std::vector<std::uint16_t> host_of_rank, std::vector<std::uint32_t> tokens);

// How a rank makes its calls in a round.
enum class CallStyle : std::uint8_t { blocking, planned, async, out_in_arena, out_elsewhere, cached };

// Runs all rounds on all ranks (threads); throws std::runtime_error with the first difference.
void run_case(Cluster& cluster, const CaseSpec& spec, const std::vector<CallStyle>& styles = {CallStyle::blocking});

// What a rank passes for a case.
rh_group_config group_config(const CaseSpec& spec, std::uint32_t rank,
                             const std::vector<std::uint32_t>& expert_to_rank);
// The reference case of one round; domains are numbered by their lowest rank, as the product does.
reference::Case reference_case(const CaseSpec& spec, std::uint32_t round);

// One round of one rank against precomputed expectations. Public for tests that mix rounds in their own way.
struct Expectation {
  reference::Case test;
  std::vector<reference::Received> received;
  std::vector<reference::Bytes> rows;  // expert outputs by rank, in received order
  std::vector<reference::Bytes> y;
};
Expectation expect(const CaseSpec& spec, std::uint32_t round);
void run_round(const Group& group, std::uint32_t rank, const CaseSpec& spec, const Expectation& expected,
               CallStyle style);

}  // namespace railhead::test
