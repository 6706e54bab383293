#include <algorithm>
#include <utility>

#include "tests/reference/model.hpp"

namespace railhead::reference {
namespace {

// One used expert of one token: what a receiver hears of.
struct Arrival {
  std::uint32_t source = 0;
  std::uint32_t token = 0;
  std::uint32_t local_expert = 0;
  Use use;
};

float weight_of_slot(const Case& test, std::uint32_t rank, std::size_t index) {
  const std::vector<float>& weights = test.inputs[rank].weights;
  return weights.empty() ? 1.0f : weights[index];
}

// Per receiver, ordered by (source rank, token, expert).
std::vector<std::vector<Arrival>> arrivals_by_receiver(const Case& test) {
  std::vector<std::uint32_t> local_expert(test.rank_of_expert.size());
  for (std::uint32_t rank = 0; rank < test.ranks(); ++rank) {
    std::uint32_t next = 0;
    for (const std::uint32_t expert : test.experts_of(rank)) local_expert[expert] = next++;
  }
  std::vector<std::vector<Arrival>> arrivals(test.ranks());
  for (std::uint32_t source = 0; source < test.ranks(); ++source) {
    for (std::uint32_t token = 0; token < test.inputs[source].tokens; ++token) {
      for (const Use& use : uses_of(test, source, token)) {
        arrivals[test.rank_of_expert[use.expert]].push_back({source, token, local_expert[use.expert], use});
      }
    }
  }
  return arrivals;
}

void append_row(const Case& test, Received& out, const Arrival& arrival) {
  const RankInput& from = test.inputs[arrival.source];
  const auto x = from.x.begin() + static_cast<std::ptrdiff_t>(arrival.token * test.row_bytes());
  const auto side = from.side.begin() + static_cast<std::ptrdiff_t>(std::size_t{arrival.token} * test.side_bytes);
  out.x.insert(out.x.end(), x, x + static_cast<std::ptrdiff_t>(test.row_bytes()));
  out.side.insert(out.side.end(), side, side + test.side_bytes);
  out.source_rank.push_back(static_cast<std::int32_t>(arrival.source));
  out.token.push_back(static_cast<std::int32_t>(arrival.token));
  out.slot.push_back(static_cast<std::int32_t>(arrival.use.slot));
  ++out.rows;
  ++out.received;
}

void append_padding_row(const Case& test, Received& out) {
  out.x.resize(out.x.size() + test.row_bytes());
  out.side.resize(out.side.size() + test.side_bytes);
  out.source_rank.push_back(-1);
  out.token.push_back(-1);
  out.slot.push_back(-1);
  out.expert.push_back(-1);
  out.weight.push_back(0);
  ++out.rows;
}

void receive_by_expert(const Case& test, std::vector<Arrival> arrivals, std::size_t experts, Received& out) {
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const Arrival& a, const Arrival& b) { return a.local_expert < b.local_expert; });
  auto next = arrivals.begin();
  for (std::size_t expert = 0; expert < experts; ++expert) {
    for (; next != arrivals.end() && next->local_expert == expert; ++next) {
      append_row(test, out, *next);
      out.expert.push_back(static_cast<std::int32_t>(expert));
      out.weight.push_back(next->use.weight);
    }
    while (out.rows % test.align != 0) append_padding_row(test, out);
  }
}

void receive_by_rank(const Case& test, const std::vector<Arrival>& arrivals, Received& out) {
  const Arrival* last = nullptr;
  for (const Arrival& arrival : arrivals) {
    if (last != nullptr && last->source == arrival.source && last->token == arrival.token) {
      out.slot.back() = std::min(out.slot.back(), static_cast<std::int32_t>(arrival.use.slot));
      out.weight.back() = out.weight.back() + arrival.use.weight;
    } else {
      out.local_experts.resize(out.rows * test.top_k, -1);  // the tail of the row before
      out.local_weights.resize(out.rows * test.top_k, 0);
      append_row(test, out, arrival);
      out.weight.push_back(arrival.use.weight);
    }
    out.local_experts.push_back(static_cast<std::int32_t>(arrival.local_expert));
    out.local_weights.push_back(arrival.use.weight);
    last = &arrival;
  }
  out.local_experts.resize(out.rows * test.top_k, -1);
  out.local_weights.resize(out.rows * test.top_k, 0);
}

void count_experts(const Case& test, const std::vector<Arrival>& arrivals, std::size_t experts, Received& out) {
  out.expert_counts.assign(experts, 0);
  for (const Arrival& arrival : arrivals) ++out.expert_counts[arrival.local_expert];
  out.offsets = {0};
  out.padded_offsets = {0};
  for (const std::int64_t count : out.expert_counts) {
    out.offsets.push_back(out.offsets.back() + count);
    out.padded_offsets.push_back(out.padded_offsets.back() + (count + test.align - 1) / test.align * test.align);
  }
}

}  // namespace

std::vector<std::uint32_t> Case::experts_of(std::uint32_t rank) const {
  std::vector<std::uint32_t> experts;
  for (std::uint32_t expert = 0; expert < rank_of_expert.size(); ++expert) {
    if (rank_of_expert[expert] == rank) experts.push_back(expert);
  }
  return experts;
}

std::vector<std::uint16_t> default_rank_of_expert(std::uint32_t experts, std::uint32_t ranks) {
  std::vector<std::uint16_t> map;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t share = experts / ranks + (rank < experts % ranks ? 1 : 0);
    map.insert(map.end(), share, static_cast<std::uint16_t>(rank));
  }
  return map;
}

std::vector<Use> uses_of(const Case& test, std::uint32_t rank, std::uint32_t token) {
  std::vector<Use> uses;
  for (std::uint32_t slot = 0; slot < test.top_k; ++slot) {
    const std::size_t index = std::size_t{token} * test.top_k + slot;
    const std::int64_t id = test.inputs[rank].ids[index];
    if (id == -1) continue;
    const float weight = weight_of_slot(test, rank, index);
    const auto same = std::find_if(uses.begin(), uses.end(), [id](const Use& use) { return use.expert == id; });
    if (same == uses.end()) {
      uses.push_back({static_cast<std::uint32_t>(id), slot, weight});
    } else {
      same->weight += weight;
    }
  }
  std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.expert < b.expert; });
  return uses;
}

std::vector<Received> dispatch(const Case& test) {
  std::vector<std::vector<Arrival>> arrivals = arrivals_by_receiver(test);
  std::vector<Received> all(test.ranks());
  for (std::uint32_t receiver = 0; receiver < test.ranks(); ++receiver) {
    const std::size_t experts = test.experts_of(receiver).size();
    count_experts(test, arrivals[receiver], experts, all[receiver]);
    if (test.layout == Layout::expert) {
      receive_by_expert(test, std::move(arrivals[receiver]), experts, all[receiver]);
    } else {
      receive_by_rank(test, arrivals[receiver], all[receiver]);
    }
  }
  return all;
}

}  // namespace railhead::reference
