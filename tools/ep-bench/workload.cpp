#include "tools/ep-bench/workload.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace railhead::bench {

std::uint32_t Workload::domains() const {
  return domain_of_rank.empty() ? 0 : *std::max_element(domain_of_rank.begin(), domain_of_rank.end()) + 1U;
}

std::size_t Workload::row_bytes() const {
  return std::size_t{hidden} * reference::size_of(number_type(type));
}

reference::NumberType number_type(rh_type type) {
  switch (type) {
    case RH_U8: return reference::NumberType::raw;
    case RH_BF16: return reference::NumberType::bf16;
    case RH_FP16: return reference::NumberType::fp16;
    case RH_FP32: break;
  }
  return reference::NumberType::fp32;
}

const char* type_name(rh_type type) {
  switch (type) {
    case RH_U8: return "u8";
    case RH_BF16: return "bf16";
    case RH_FP16: return "fp16";
    case RH_FP32: break;
  }
  return "fp32";
}

const char* layout_name(rh_layout layout) {
  return layout == RH_LAYOUT_RANK ? "rank" : "expert";
}

nlohmann::json to_json(const Workload& work) {
  return {{"domain_of_rank", work.domain_of_rank},
          {"tokens", work.tokens},
          {"hidden", work.hidden},
          {"topk", work.top_k},
          {"experts", work.experts},
          {"layout", static_cast<int>(work.layout)},
          {"align", work.align},
          {"type", static_cast<int>(work.type)},
          {"wire", static_cast<int>(work.wire)},
          {"channels", work.channels},
          {"depth", work.depth},
          {"slots", work.ring_slots},
          {"chunk", work.chunk_bytes},
          {"routing", work.routing},
          {"seed", work.seed},
          {"in_place", work.in_place},
          {"async", work.two_in_flight},
          {"timeout_s", work.timeout_s}};
}

Status save(const Workload& work, const std::string& path) {
  std::ofstream file(path);
  file << to_json(work).dump();
  file.close();
  return file ? Status() : system_status("write " + path, errno);
}

Result<Workload> load_workload(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(system_status("open " + path, errno));
  try {
    const nlohmann::json in = nlohmann::json::parse(file);
    Workload work;
    in.at("domain_of_rank").get_to(work.domain_of_rank);
    in.at("tokens").get_to(work.tokens);
    in.at("hidden").get_to(work.hidden);
    in.at("topk").get_to(work.top_k);
    in.at("experts").get_to(work.experts);
    work.layout = static_cast<rh_layout>(in.at("layout").get<int>());
    in.at("align").get_to(work.align);
    work.type = static_cast<rh_type>(in.at("type").get<int>());
    work.wire = static_cast<rh_type>(in.at("wire").get<int>());
    in.at("channels").get_to(work.channels);
    in.at("depth").get_to(work.depth);
    in.at("slots").get_to(work.ring_slots);
    in.at("chunk").get_to(work.chunk_bytes);
    in.at("routing").get_to(work.routing);
    in.at("seed").get_to(work.seed);
    in.at("in_place").get_to(work.in_place);
    in.at("async").get_to(work.two_in_flight);
    in.at("timeout_s").get_to(work.timeout_s);
    return work;
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::invalid_argument, path + ": " + error.what());
  }
}

Placement place_ranks(const std::vector<std::uint32_t>& per_node, bool interleaved) {
  Placement out;
  std::vector<std::uint32_t> left = per_node;
  for (bool placed = true; placed;) {
    placed = false;
    for (std::size_t node = 0; node < left.size(); ++node) {
      const std::uint32_t take = interleaved ? std::min(left[node], 1U) : left[node];
      out.node_of_rank.insert(out.node_of_rank.end(), take, static_cast<std::uint16_t>(node));
      left[node] -= take;
      placed |= take != 0;
    }
  }
  std::map<std::uint16_t, std::uint16_t> domain_of_node;
  for (const std::uint16_t node : out.node_of_rank) {
    const auto next = static_cast<std::uint16_t>(domain_of_node.size());
    out.domain_of_rank.push_back(domain_of_node.emplace(node, next).first->second);
  }
  return out;
}

}  // namespace railhead::bench
