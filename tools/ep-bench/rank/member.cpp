#include "tools/ep-bench/rank/member.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <tuple>

namespace railhead::bench {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Status status_of(const Error& error) {
  std::string_view text = error.what();
  const std::string name = std::string(rh_status_name(error.status())) + ": ";
  if (text.starts_with(name)) text.remove_prefix(name.size());
  return {static_cast<Code>(error.status()), std::string(text)};
}

Member::Member(const Workload& work, std::uint32_t rank)
    : work_(work), rank_(rank), payload_(work), batches_(work.batches()) {
  const std::size_t bytes = work.tokens[rank] * work.row_bytes();
  for (Batch& batch : batches_) {
    batch.x.resize(bytes);
    batch.y.resize(bytes);
  }
}

Status Member::open() {
  auto source = open_routing(work_.routing, {work_.experts, work_.top_k, work_.seed});
  if (!source) return source.error();
  source_ = std::move(*source);
  verifier_.emplace(work_, *source_, payload_, rank_);
  return {};
}

void Member::join(const Session& session, const UniqueId& id) {
  auto config = make<rh_group_config>();
  config.ranks = work_.ranks();
  config.rank = rank_;
  config.experts = work_.experts;
  config.hidden = work_.hidden;
  config.topk = work_.top_k;
  config.channels = work_.channels;
  config.depth = work_.depth;
  config.ring_slots = work_.ring_slots;
  config.chunk_bytes = work_.chunk_bytes;
  config.op_timeout_ms = work_.timeout_s * 1000;
  config.join_timeout_ms = work_.timeout_s * 1000;
  group_.emplace(session, id, config);
}

void Member::prepare(std::uint64_t round, bool verify) {
  for (std::uint32_t i = 0; i < batches_.size(); ++i) {
    Batch& batch = batches_[i];
    const std::uint64_t number = round * batches_.size() + i;
    batch.routing = source_->draw(rank_, number, work_.tokens[rank_]);
    if (verify || !filled_) payload_.fill(rank_, number, batch.x);
  }
  filled_ = true;
}

rh_dispatch_args Member::dispatch_args(const Batch& batch) const {
  auto args = make<rh_dispatch_args>();
  args.x = batch.x.data();
  args.type = work_.type;
  args.tokens = batch.routing.tokens;
  args.ids = batch.routing.ids.data();
  args.id_type = RH_INT64;
  args.topk = work_.top_k;
  args.weights = batch.routing.weights.data();
  args.layout = work_.layout;
  args.align = work_.layout == RH_LAYOUT_EXPERT ? work_.align : 0;
  return args;
}

rh_combine_args Member::combine_args(Batch& batch) const {
  auto args = make<rh_combine_args>();
  args.handle = batch.handle.get();
  args.rows = batch.result.rows;
  args.row_count = batch.result.row_count;
  args.type = work_.type;
  args.wire_type = work_.wire;
  args.weighted = work_.layout == RH_LAYOUT_EXPERT ? 1 : 0;
  args.y = batch.y.data();
  return args;
}

void Member::dispatch(Batch& batch) const {
  if (work_.in_place) {
    std::tie(batch.result, batch.handle) = group_->dispatch(dispatch_args(batch));
    return;
  }
  std::uint64_t rows = 0;
  std::tie(rows, batch.handle) = group_->plan(dispatch_args(batch));
  if (batch.rows.size() < rows * work_.row_bytes()) batch.rows.resize(rows * work_.row_bytes());
  batch.result = group_->run(batch.handle, batch.rows.data(), rows);
}

void Member::run(RoundSample& sample) {
  const std::int64_t start = now_ns();
  std::int64_t middle = 0;
  if (batches_.size() > 1) {
    run_overlapped(start, middle);
  } else {
    dispatch(batches_[0]);
    middle = now_ns();
    if (work_.combines()) group_->combine(combine_args(batches_[0]));
  }
  const std::int64_t end = now_ns();
  sample.dispatch_ns = static_cast<std::uint64_t>(middle - start);
  sample.combine_ns = static_cast<std::uint64_t>(end - middle);
  sample.total_ns = static_cast<std::uint64_t>(end - start);
}

// Both dispatches fly together, and the second one beside the first batch's combine: dispatch time ends when the last
// dispatch is complete.
void Member::run_overlapped(std::int64_t start, std::int64_t& middle) {
  Event events[2];
  for (std::size_t i = 0; i < 2; ++i) {
    std::tie(events[i], batches_[i].handle) = group_->dispatch_async(dispatch_args(batches_[i]), batches_[i].result);
  }
  middle = start;
  for (std::size_t i = 0; i < 2; ++i) {
    events[i].wait();
    middle = now_ns();
    if (work_.combines()) events[i] = group_->combine_async(combine_args(batches_[i]));
  }
  for (Event& event : events) event.wait();
}

Status Member::verify(std::uint64_t round) const {
  for (std::uint32_t i = 0; i < batches_.size(); ++i) {
    const std::uint64_t number = round * batches_.size() + i;
    if (Status received = verifier_->received(number, batches_[i].result); !received.ok()) return received;
    if (!work_.combines()) continue;
    if (Status combined = verifier_->combined(number, batches_[i].y.data()); !combined.ok()) return combined;
  }
  return {};
}

void Member::release() {
  for (Batch& batch : batches_) batch.handle.release();
}

void Member::finish(RoundSample& sample) {
  sample.rows = sample.received_bytes = sample.rail_bytes = 0;
  sample.dispatch_wait_ns = sample.dispatch_transfer_ns = sample.combine_wait_ns = sample.combine_transfer_ns = 0;
  sample.last_rank_dispatch = sample.last_rank_combine = -1;
  for (Batch& batch : batches_) {
    sample.rows += batch.result.received;
    sample.received_bytes += batch.result.received * work_.row_bytes();
  }
  release();
  const std::size_t ops = batches_.size() * (work_.combines() ? 2 : 1);
  const auto stats = group_->stats();
  for (std::size_t i = 0; i < std::min(ops, stats.size()); ++i) {
    const rh_op_stats& op = stats[i];
    const bool is_dispatch = op.kind == 1;
    sample.rail_bytes += op.rail_bytes;
    (is_dispatch ? sample.dispatch_wait_ns : sample.combine_wait_ns) += op.wait_ns;
    (is_dispatch ? sample.dispatch_transfer_ns : sample.combine_transfer_ns) += op.transfer_ns;
    (is_dispatch ? sample.last_rank_dispatch : sample.last_rank_combine) = op.last_rank;
  }
}

}  // namespace railhead::bench
