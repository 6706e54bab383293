// What the ranks of one run do: the part of the options that every rank process needs, spread as a JSON file.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ipc/status.hpp"
#include "railhead/railhead.h"
#include "tests/reference/numbers.hpp"

namespace railhead::bench {

struct Workload {
  std::vector<std::uint16_t> domain_of_rank = {0, 0, 0, 0};  // domains are numbered by their lowest rank
  std::vector<std::uint32_t> tokens = {128, 128, 128, 128};  // per rank
  std::uint32_t hidden = 7168;
  std::uint32_t top_k = 8;
  std::uint32_t experts = 256;
  rh_layout layout = RH_LAYOUT_RANK;
  std::uint32_t align = 1;
  rh_type type = RH_BF16;
  rh_type wire = RH_BF16;
  std::uint32_t channels = 0;  // 0: the library's default, here and below
  std::uint32_t depth = 0;
  std::uint32_t ring_slots = 0;
  std::uint32_t chunk_bytes = 0;
  std::string routing = "uniform";
  std::uint64_t seed = 1;
  bool in_place = true;
  bool two_in_flight = false;  // two batches of tokens a round, their operations overlapping
  std::uint64_t timeout_s = 120;

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(domain_of_rank.size()); }
  [[nodiscard]] std::uint32_t domains() const;
  [[nodiscard]] std::uint32_t batches() const { return two_in_flight ? 2 : 1; }
  [[nodiscard]] std::size_t row_bytes() const;
  // Raw bytes cannot be summed.
  [[nodiscard]] bool combines() const { return type != RH_U8; }
};

// The reference model's name of a type.
reference::NumberType number_type(rh_type type);
const char* type_name(rh_type type);
const char* layout_name(rh_layout layout);

nlohmann::json to_json(const Workload& work);
Status save(const Workload& work, const std::string& path);
// invalid_argument or system, with the path.
Result<Workload> load_workload(const std::string& path);

// Which domain each rank is in. `per_node` is ranks per node; interleaved deals the ranks out node by node, one at a
// time, to those that still have room.
struct Placement {
  std::vector<std::uint16_t> node_of_rank;
  std::vector<std::uint16_t> domain_of_rank;  // the same, numbered by lowest rank
};
Placement place_ranks(const std::vector<std::uint32_t>& per_node, bool interleaved);

}  // namespace railhead::bench
