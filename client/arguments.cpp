#include "client/arguments.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace railhead::client {
namespace {

tl::unexpected<Status> bad(const std::string& text) {
  return fail(Code::invalid_argument, text);
}

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

// The pitch in bytes of rows of this size; 0 means dense.
Result<std::uint64_t> pitch_of(const char* field, std::size_t pitch, std::uint64_t row_bytes) {
  if (pitch == 0) return row_bytes;
  if (pitch < row_bytes)
    return bad(std::string(field) + " is " + number(pitch) + ", a row has " + number(row_bytes) + " bytes");
  return pitch;
}

Result<kernels::DataType> data_type(const char* field, rh_type type) {
  switch (type) {
    case RH_U8: return kernels::DataType::u8;
    case RH_BF16: return kernels::DataType::bf16;
    case RH_FP16: return kernels::DataType::fp16;
    case RH_FP32: return kernels::DataType::fp32;
  }
  return bad(std::string(field) + " is " + number(static_cast<std::uint64_t>(type)) + ", types are 0 to 3");
}

Result<void> arena_bytes(const char* field, std::size_t bytes) {
  if (bytes <= kMostArenaBytes) return {};
  return fail(Code::limit_exceeded,
              std::string(field) + " is " + number(bytes) + ", the most is " + number(kMostArenaBytes));
}

Result<void> check_routing(const GroupContext& group, const rh_dispatch_args& args, DispatchInput& out) {
  const std::uint32_t group_topk = group.shape.params().topk;
  const std::uint32_t topk = args.topk == 0 ? group_topk : args.topk;
  if (topk > group_topk) return bad("topk is " + number(topk) + ", the group was made with " + number(group_topk));
  if (args.tokens > INT32_MAX) return bad("tokens is " + number(args.tokens) + ", at most " + number(INT32_MAX));
  if (args.tokens != 0 && args.ids == nullptr) return bad("ids is NULL with tokens " + number(args.tokens));
  if (args.id_type != RH_INT64 && args.id_type != RH_INT32) {
    return bad("id_type is " + number(static_cast<std::uint64_t>(args.id_type)) +
               ", types are 0 (int64) and 1 (int32)");
  }
  if (args.layout != RH_LAYOUT_RANK && args.layout != RH_LAYOUT_EXPERT) {
    return bad("layout is " + number(static_cast<std::uint64_t>(args.layout)) +
               ", layouts are 0 (rank) and 1 (expert)");
  }
  if (args.align > UINT16_MAX) return bad("align is " + number(args.align) + ", at most " + number(UINT16_MAX));
  if (args.layout == RH_LAYOUT_RANK && args.align > 1) {
    return bad("align is " + number(args.align) + " with layout rank, which has no padding");
  }
  out.layout = args.layout == RH_LAYOUT_RANK ? ipc::Layout::rank : ipc::Layout::expert;
  out.align = std::max(1U, args.align);
  out.routing = {args.ids,
                 args.weights,
                 topk,
                 topk,
                 args.tokens,
                 topk,
                 args.id_type == RH_INT32 ? kernels::IdType::int32 : kernels::IdType::int64};
  return {};
}

}  // namespace

template <class T>
Result<T> read_struct(const T* in, const char* name) {
  T out{};
  if (in == nullptr) return bad(std::string(name) + " is NULL");
  if (in->size == 0) return bad(std::string(name) + ".size is 0: set it to sizeof(" + name + ")");
  if (in->size > kMostStructBytes) {
    return fail(Code::unsupported, std::string(name) + ".size is " + number(in->size) +
                                       ", more than any version has: " + "set it to sizeof(" + name + ")");
  }
  const auto* const bytes = reinterpret_cast<const unsigned char*>(in);
  for (std::size_t i = sizeof(T); i < in->size; ++i) {
    if (bytes[i] != 0) {
      return fail(Code::unsupported, std::string(name) + " has " + number(in->size) + " bytes, this library knows " +
                                         number(sizeof(T)) + " and cannot do what the rest asks");
    }
  }
  std::memcpy(&out, in, std::min(in->size, sizeof(T)));
  out.size = sizeof(T);
  return out;
}

template Result<rh_session_config> read_struct(const rh_session_config*, const char*);
template Result<rh_group_config> read_struct(const rh_group_config*, const char*);
template Result<rh_dispatch_args> read_struct(const rh_dispatch_args*, const char*);
template Result<rh_combine_args> read_struct(const rh_combine_args*, const char*);

Result<ipc::GroupParams> group_params(const rh_group_config& config) {
  ipc::GroupParams p;
  p.ranks = config.ranks;
  p.experts = config.experts;
  p.hidden = config.hidden;
  p.topk = config.topk;
  p.side_bytes = config.side_bytes;
  if (config.channels != 0) p.channels = config.channels;
  if (config.depth != 0) p.depth = config.depth;
  if (config.ring_slots != 0) p.ring_slots = config.ring_slots;
  p.chunk_bytes = config.chunk_bytes;
  if (config.max_handles != 0) p.max_handles = config.max_handles;
  p.abort_on_refusal = config.abort_on_refusal != 0;
  if (config.expert_to_rank != nullptr && config.experts <= ipc::kMaxExperts) {
    p.expert_rank.assign(config.expert_to_rank, config.expert_to_rank + config.experts);
  }
  if (auto good = ipc::validate(p); !good) return fail(good.error());
  if (config.rank >= config.ranks) return bad("rank is " + number(config.rank) + ", ranks is " + number(config.ranks));
  if (auto good = arena_bytes("receive_bytes", config.receive_bytes); !good) return fail(good.error());
  if (auto good = arena_bytes("combine_bytes", config.combine_bytes); !good) return fail(good.error());
  return p;
}

Status too_many_rows(std::uint64_t out_rows) {
  return {Code::invalid_argument, "out_rows is " + number(out_rows) + ": use at most 4294967295"};
}

Result<DispatchInput> dispatch_input(const GroupContext& group, const rh_dispatch_args& args, const Handle* cached) {
  DispatchInput out;
  if (cached == nullptr) {
    if (auto good = check_routing(group, args, out); !good) return fail(good.error());
  } else {
    out.layout = cached->route.layout;
    out.align = cached->route.align;
  }
  const std::uint32_t tokens = cached != nullptr ? cached->tokens : args.tokens;
  auto type = data_type("type", args.type);
  if (!type) return fail(type.error());
  DispatchRequest& request = out.request;
  request.type = *type;
  request.cached = cached != nullptr;
  request.side_bytes = args.side_bytes;
  if (args.side_bytes > group.shape.params().side_bytes) {
    return bad("side_bytes is " + number(args.side_bytes) + ", the group was made with " +
               number(group.shape.params().side_bytes));
  }
  if (tokens != 0 && args.x == nullptr) return bad("x is NULL with tokens " + number(tokens));
  if (tokens != 0 && args.side_bytes != 0 && args.side == nullptr) {
    return bad("side is NULL with side_bytes " + number(args.side_bytes));
  }
  auto x_pitch =
      pitch_of("x_pitch", args.x_pitch, std::uint64_t{group.shape.params().hidden} * kernels::size_of(*type));
  if (!x_pitch) return fail(x_pitch.error());
  auto side_pitch = pitch_of("side_pitch", args.side_pitch, args.side_bytes);
  if (!side_pitch) return fail(side_pitch.error());
  request.data = {static_cast<const std::byte*>(args.x), *x_pitch, static_cast<const std::byte*>(args.side),
                  *side_pitch};
  request.out = args.out;
  if (args.out != nullptr && args.out_rows > UINT32_MAX) return fail(too_many_rows(args.out_rows));
  request.out_rows = args.out_rows;
  return out;
}

Result<CombineRequest> combine_input(const GroupContext& group, const rh_combine_args& args, const Handle& handle) {
  CombineRequest out;
  auto type = data_type("type", args.type);
  if (!type) return fail(type.error());
  if (!kernels::is_float(*type)) return bad("type is 0 (raw bytes): combine sums bf16, fp16 or fp32");
  auto wire = data_type("wire_type", args.wire_type == RH_U8 ? RH_BF16 : args.wire_type);
  if (!wire) return fail(wire.error());
  if (*wire == kernels::DataType::fp16) return bad("wire_type is fp16: partial sums travel as bf16 or fp32");
  const std::uint64_t rows = handle.row_count(group.local);
  if (args.row_count != rows) {
    return bad("row_count is " + number(args.row_count) + ", the handle of op " + number(handle.route.op) + " has " +
               number(rows) + " rows on this rank: pass the rows that its dispatch gave");
  }
  if (rows != 0 && args.rows == nullptr) return bad("rows is NULL with row_count " + number(rows));
  if (handle.tokens != 0 && args.y == nullptr) return bad("y is NULL with tokens " + number(handle.tokens));
  if (args.weighted != 0 && handle.route.layout == ipc::Layout::rank) {
    return bad("weighted combine with layout rank: its rows are sums over experts already, apply the weights there");
  }
  auto y_pitch =
      pitch_of("y_pitch", args.y_pitch, std::uint64_t{group.shape.params().hidden} * kernels::size_of(*type));
  if (!y_pitch) return fail(y_pitch.error());
  out.rows = static_cast<const std::byte*>(args.rows);
  out.type = *type;
  out.wire = *wire;
  out.weighted = args.weighted != 0;
  out.y = static_cast<std::byte*>(args.y);
  out.y_pitch = *y_pitch;
  return out;
}

}  // namespace railhead::client
