#include "tests/support/case_runner.hpp"

#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>

namespace railhead::test {
namespace {

using reference::Bytes;
using reference::NumberType;

rh_type type_of(NumberType type) {
  switch (type) {
    case NumberType::raw: return RH_U8;
    case NumberType::bf16: return RH_BF16;
    case NumberType::fp16: return RH_FP16;
    case NumberType::fp32: return RH_FP32;
  }
  return RH_U8;
}

std::uint32_t call_topk(const CaseSpec& spec) {
  return spec.call_topk == 0 ? spec.topk : spec.call_topk;
}

// The first call_topk of every token's topk slots: the model sees the rest as unused.
template <class To, class From>
std::vector<To> called_slots(const CaseSpec& spec, const std::vector<From>& slots) {
  std::vector<To> out;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i % spec.topk < call_topk(spec)) out.push_back(static_cast<To>(slots[i]));
  }
  return out;
}

// What a call points to.
struct CallSlots {
  std::vector<std::int64_t> ids64;
  std::vector<std::int32_t> ids32;
  std::vector<float> weights;
  CallSlots(const CaseSpec& spec, const reference::RankInput& in)
      : ids64(called_slots<std::int64_t>(spec, in.ids)),
        ids32(called_slots<std::int32_t>(spec, in.ids)),
        weights(called_slots<float>(spec, in.weights)) {}
};

template <class T>
void same(const char* what, std::uint32_t rank, const std::vector<T>& expected, const T* actual) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == actual[i]) continue;
    std::ostringstream text;
    text << "rank " << rank << ": " << what << "[" << i << "] is " << actual[i] << ", expected " << expected[i];
    throw std::runtime_error(text.str());
  }
}

void same_bytes(const char* what, std::uint32_t rank, NumberType type, const Bytes& expected, const void* actual) {
  if (expected.empty()) return;
  const std::span<const std::byte> seen(static_cast<const std::byte*>(actual), expected.size());
  if (const auto difference = reference::first_difference(type, expected, seen)) {
    throw std::runtime_error("rank " + std::to_string(rank) + ": " + what + ": " + *difference);
  }
}

void same_number(const char* what, std::uint32_t rank, std::uint64_t expected, std::uint64_t actual) {
  if (expected == actual) return;
  throw std::runtime_error("rank " + std::to_string(rank) + ": " + what + " is " + std::to_string(actual) +
                           ", expected " + std::to_string(expected));
}

void check_received(const rh_dispatch_result& got, std::uint32_t rank, const CaseSpec& spec,
                    const reference::Received& want) {
  same_number("row_count", rank, want.rows, got.row_count);
  same_number("received", rank, want.received, got.received);
  same_bytes("rows", rank, NumberType::raw, want.x, got.rows);
  same_bytes("side", rank, NumberType::raw, want.side, got.side);
  same("row_rank", rank, want.source_rank, got.row_rank);
  same("row_token", rank, want.token, got.row_token);
  same("row_slot", rank, want.slot, got.row_slot);
  same_number("local_experts", rank, want.expert_counts.size(), got.local_experts);
  const std::vector<std::int32_t> counts(want.expert_counts.begin(), want.expert_counts.end());
  same("expert_counts", rank, counts, got.expert_counts);
  const auto& offsets = spec.layout == reference::Layout::expert ? want.padded_offsets : want.offsets;
  same("expert_offsets64", rank, offsets, got.expert_offsets64);
  same("expert_offsets", rank, std::vector<std::int32_t>(offsets.begin(), offsets.end()), got.expert_offsets);
  same("row_weight", rank, want.weight, got.row_weight);
  if (spec.layout == reference::Layout::rank) {
    same("local_ids", rank, want.local_experts, got.local_ids);
    same("local_weights", rank, want.local_weights, got.local_weights);
  }
}

rh_dispatch_args dispatch_args(const CaseSpec& spec, const reference::RankInput& in, const CallSlots& slots) {
  rh_dispatch_args args{};
  args.x = in.tokens == 0 ? nullptr : in.x.data();
  args.type = type_of(spec.type);
  args.tokens = in.tokens;
  args.ids = in.tokens == 0   ? nullptr
             : spec.int32_ids ? static_cast<const void*>(slots.ids32.data())
                              : slots.ids64.data();
  args.id_type = spec.int32_ids ? RH_INT32 : RH_INT64;
  args.topk = spec.call_topk;
  args.weights = slots.weights.empty() ? nullptr : slots.weights.data();
  args.side_bytes = spec.side_bytes;
  args.side = spec.side_bytes == 0 || in.tokens == 0 ? nullptr : in.side.data();
  args.layout = spec.layout == reference::Layout::rank ? RH_LAYOUT_RANK : RH_LAYOUT_EXPERT;
  args.align = spec.layout == reference::Layout::rank ? 0 : spec.align;
  return args;
}

// The same rows, `extra` bytes further apart.
Bytes spread(const Bytes& dense, std::size_t row_bytes, std::size_t extra) {
  if (row_bytes == 0) return {};
  const std::size_t rows = dense.size() / row_bytes;
  Bytes out(rows * (row_bytes + extra), std::byte{0xee});
  for (std::size_t i = 0; i < rows; ++i) {
    std::memcpy(out.data() + i * (row_bytes + extra), dense.data() + i * row_bytes, row_bytes);
  }
  return out;
}

// Rows with room between them, brought together; what lies between must be as it was.
Bytes gather(const Bytes& spread_out, std::size_t row_bytes, std::size_t extra, std::uint32_t rank) {
  Bytes out;
  for (std::size_t at = 0; at < spread_out.size(); at += row_bytes + extra) {
    const auto* const row = spread_out.data() + at;
    out.insert(out.end(), row, row + row_bytes);
    for (std::size_t i = 0; i < extra; ++i) {
      if (row[row_bytes + i] != std::byte{0x5a}) {
        throw std::runtime_error("rank " + std::to_string(rank) + ": combine wrote between the rows of y");
      }
    }
  }
  return out;
}

struct Dispatched {
  rh_dispatch_result result;
  Handle handle;
};

}  // namespace

std::string CaseSpec::describe() const {
  std::ostringstream out;
  out << "R=" << host_of_rank.size() << " hosts=";
  for (const auto host : host_of_rank) out << host;
  out << " E=" << experts << (rank_of_expert.empty() ? "" : " mapped") << " K=" << topk << " called=" << call_topk
      << " H=" << hidden << " T=";
  for (const auto t : tokens) out << t << ",";
  out << " type=" << reference::name_of(type) << " combine=" << reference::name_of(combine)
      << " wire=" << reference::name_of(wire) << " layout=" << (layout == reference::Layout::rank ? "rank" : "expert")
      << " align=" << align << " side=" << side_bytes << " C=" << channels << " D=" << depth << " slots=" << ring_slots
      << " chunk=" << chunk_bytes << " ids=" << (int32_ids ? 32 : 64) << " weights=" << weights
      << " weighted=" << weighted << " pitch=" << pitch_extra << " odd=" << odd.unused_slots << "/" << odd.unused_tokens
      << "/" << odd.repeated_slots << "/" << odd.only_expert << " seed=" << seed;
  return out.str();
}

CaseSpec spec_of(std::vector<std::uint16_t> host_of_rank, std::vector<std::uint32_t> tokens) {
  CaseSpec spec;
  spec.host_of_rank = std::move(host_of_rank);
  spec.tokens = std::move(tokens);
  return spec;
}

rh_group_config group_config(const CaseSpec& spec, std::uint32_t rank,
                             const std::vector<std::uint32_t>& expert_to_rank) {
  auto config = make<rh_group_config>();
  config.ranks = static_cast<std::uint32_t>(spec.host_of_rank.size());
  config.rank = rank;
  config.experts = spec.experts;
  config.expert_to_rank = expert_to_rank.empty() ? nullptr : expert_to_rank.data();
  config.hidden = spec.hidden;
  config.topk = spec.topk;
  config.side_bytes = spec.side_bytes;
  config.channels = spec.channels;
  config.depth = spec.depth;
  config.ring_slots = spec.ring_slots;
  config.chunk_bytes = spec.chunk_bytes;
  config.op_timeout_ms = 120'000;
  config.join_timeout_ms = 60'000;
  return config;
}

reference::Case reference_case(const CaseSpec& spec, std::uint32_t round) {
  reference::Case test;
  std::map<std::uint16_t, std::uint16_t> domain_of_host;
  for (const auto host : spec.host_of_rank) {
    const auto next = static_cast<std::uint16_t>(domain_of_host.size());
    test.domain_of_rank.push_back(domain_of_host.emplace(host, next).first->second);
  }
  test.rank_of_expert =
      spec.rank_of_expert.empty()
          ? reference::default_rank_of_expert(spec.experts, static_cast<std::uint32_t>(spec.host_of_rank.size()))
          : spec.rank_of_expert;
  test.top_k = spec.topk;
  test.hidden = spec.hidden;
  test.type = spec.type;
  test.side_bytes = spec.side_bytes;
  test.layout = spec.layout;
  test.align = spec.layout == reference::Layout::rank ? 1 : spec.align;
  reference::fill_random(test, spec.tokens, spec.seed * 1000 + round, spec.odd);
  for (reference::RankInput& in : test.inputs) {
    for (std::size_t i = 0; i < in.ids.size(); ++i) {
      if (i % spec.topk >= call_topk(spec)) in.ids[i] = -1;
    }
    if (!spec.weights) in.weights.clear();
  }
  return test;
}

Expectation expect(const CaseSpec& spec, std::uint32_t round) {
  Expectation out;
  out.test = reference_case(spec, round);
  out.received = reference::dispatch(out.test);
  for (std::size_t r = 0; r < out.received.size(); ++r) {
    out.rows.push_back(reference::random_values(spec.combine, out.received[r].rows * spec.hidden,
                                                spec.seed * 77 + round * 131 + r, spec.odd.special_values));
  }
  reference::CombineOptions options;
  options.input = options.output = spec.combine;
  options.wire = spec.wire;
  options.hidden = spec.hidden;
  options.weighted = spec.weighted && spec.layout == reference::Layout::expert;
  out.y = reference::combine(out.test, out.received, out.rows, options);
  return out;
}

void run_round(const Group& group, std::uint32_t rank, const CaseSpec& spec, const Expectation& expected,
               CallStyle style) {
  const reference::RankInput& in = expected.test.inputs[rank];
  const reference::Received& want = expected.received[rank];
  const CallSlots slots(spec, in);
  rh_dispatch_args args = dispatch_args(spec, in, slots);
  const std::size_t extra = spec.pitch_extra;
  Bytes x;
  Bytes side;
  if (extra != 0) {
    x = spread(in.x, expected.test.row_bytes(), extra);
    side = spread(in.side, spec.side_bytes, extra);
    args.x = x.empty() ? nullptr : x.data();
    args.x_pitch = expected.test.row_bytes() + extra;
    args.side = side.empty() ? nullptr : side.data();
    args.side_pitch = spec.side_bytes + extra;
  }
  Bytes elsewhere;
  Memory arena;
  Dispatched got{};
  switch (style) {
    case CallStyle::blocking:
    case CallStyle::cached: {
      auto [result, handle] = group.dispatch(args);
      got = {result, std::move(handle)};
      break;
    }
    case CallStyle::planned: {
      auto [rows, handle] = group.plan(args);
      same_number("planned rows", rank, want.rows, rows);
      elsewhere.resize(rows * expected.test.row_bytes());
      got.result = group.run(handle, rows == 0 ? nullptr : elsewhere.data(), rows);
      got.handle = std::move(handle);
      break;
    }
    case CallStyle::async: {
      rh_dispatch_result result{};
      auto [event, handle] = group.dispatch_async(args, result);
      event.wait();
      got = {result, std::move(handle)};
      break;
    }
    case CallStyle::out_in_arena: {
      const std::size_t room = want.rows + 3;
      arena = group.alloc(RH_ARENA_RECEIVE, room * expected.test.row_bytes());
      args.out = arena.data();
      args.out_rows = room;
      auto [result, handle] = group.dispatch(args);
      got = {result, std::move(handle)};
      break;
    }
    case CallStyle::out_elsewhere: {
      elsewhere.resize((want.rows + 1) * expected.test.row_bytes());
      args.out = elsewhere.data();
      args.out_rows = want.rows + 1;
      auto [result, handle] = group.dispatch(args);
      got = {result, std::move(handle)};
      break;
    }
  }
  check_received(got.result, rank, spec, want);
  if (style == CallStyle::cached) {
    args.cached = got.handle.get();
    const auto again = group.dispatch(args).first;
    same_bytes("rows of the cached dispatch", rank, NumberType::raw, want.x, again.rows);
    same("row_token of the cached dispatch", rank, want.token, again.row_token);
  }

  const NumberType type = spec.combine;
  const std::size_t y_bytes = spec.hidden * reference::size_of(type);
  Bytes y(in.tokens * (y_bytes + extra), std::byte{0x5a});
  rh_combine_args combine{};
  combine.handle = got.handle.get();
  combine.row_count = want.rows;
  combine.type = type_of(type);
  combine.wire_type = type_of(spec.wire);
  combine.weighted = spec.weighted && spec.layout == reference::Layout::expert ? 1 : 0;
  combine.y = y.empty() ? nullptr : y.data();
  combine.y_pitch = extra == 0 ? 0 : y_bytes + extra;
  const Bytes& rows = expected.rows[rank];
  Memory staged;
  if (style == CallStyle::out_in_arena && !rows.empty()) {
    staged = group.alloc(RH_ARENA_COMBINE, rows.size());
    std::memcpy(staged.data(), rows.data(), rows.size());
    combine.rows = staged.data();
  } else {
    combine.rows = rows.empty() ? nullptr : rows.data();
  }
  if (style == CallStyle::async) {
    group.combine_async(combine).wait();
  } else {
    group.combine(combine);
  }
  const Bytes dense = extra == 0 ? std::move(y) : gather(y, y_bytes, extra, rank);
  same_bytes("y", rank, type, expected.y[rank], dense.data());
}

void run_case(Cluster& cluster, const CaseSpec& spec, const std::vector<CallStyle>& styles) {
  std::vector<Expectation> expected;
  for (std::uint32_t round = 0; round < spec.rounds; ++round) expected.push_back(expect(spec, round));
  const std::vector<std::uint32_t> expert_to_rank(spec.rank_of_expert.begin(), spec.rank_of_expert.end());
  cluster.run(spec.host_of_rank, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, group_config(spec, rank, expert_to_rank));
    for (std::uint32_t round = 0; round < spec.rounds; ++round) {
      run_round(group, rank, spec, expected[round], styles[round % styles.size()]);
    }
  });
}

}  // namespace railhead::test
