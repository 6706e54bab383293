#include "client/dispatch_op.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace railhead::client {

using kernels::Step;

DispatchOp::DispatchOp(std::shared_ptr<Handle> handle, DispatchRequest request, Call call)
    : Op(ipc::OpKind::dispatch, call), handle_(std::move(handle)), request_(request), may_run_(!request.plan_only) {}

std::uint64_t DispatchOp::meta_bytes(std::uint64_t rows) const {
  return kernels::RowMeta(rows, handle_->route.topk, request_.side_bytes, handle_->route.layout).bytes();
}

Result<Step> DispatchOp::step(GroupContext& group, const Op* prior) {
  bool progressed = false;
  if (!published()) {
    if (!publish(group, handle_->route.plan)) return Step::blocked;
    progressed = true;
  }
  const bool sent_all = send(group, prior, progressed);
  if (!counted_) {
    auto have = collect(group);
    if (!have) return fail(have.error());
    if (*have) {
      if (auto counted = count(group); !counted) return fail(counted.error());
      progressed = true;
    }
  }
  if (counted_ && may_run_ && !placed_) {
    if (auto done = place(group); !done) return fail(done.error());
    progressed = true;
  }
  if (placed_ && !opened_) {
    auto open = open_outputs(group);
    if (!open) return fail(open.error());
    progressed |= *open;
  }
  if (opened_ && !moved_) {
    auto moved = move(group, prior, progressed);
    if (!moved) return fail(moved.error());
  }
  if (moved_ && sent_all) {
    auto complete = arrived(group);
    if (!complete) return fail(complete.error());
    if (*complete) return Step::done;
  }
  return progressed ? Step::progressed : Step::blocked;
}

// The handle has its number from the start: it may be released before the first step.
void DispatchOp::admit(GroupContext& group, std::uint64_t number) noexcept {
  Op::admit(group, number);
  form_.op = number;
  if (request_.cached) return;
  handle_->route.op = number;
  group.handles.add(number, handle_);
}

Result<void> DispatchOp::prepare(GroupContext& group) {
  const kernels::Route& route = handle_->route;
  form_.epoch = group.shape.epoch();
  form_.topk = group.shape.params().topk;
  form_.side_bytes = request_.side_bytes;
  form_.row_bytes = group.shape.params().hidden * static_cast<std::uint32_t>(kernels::size_of(request_.type));
  form_.record = ipc::DispatchRecordLayout(form_.topk, form_.side_bytes, form_.row_bytes);

  header_.layout = static_cast<std::uint8_t>(route.layout);
  header_.element = static_cast<std::uint8_t>(request_.type);
  header_.flags = request_.cached ? ipc::kFlagCached : 0;
  header_.align = static_cast<std::uint16_t>(route.align);
  header_.side_bytes = request_.side_bytes;
  header_.handle_op = request_.cached ? route.op : 0;
  header_.tokens = handle_->tokens;
  if (!request_.cached) group.handles.make_room();
  if (may_run_) {
    if (auto offered = offer(group); !offered) return offered;
  }
  if (group.rail == nullptr) return {};
  const ipc::RailRings& rings = group.rail->rings();
  for (std::uint32_t i = 0; i < rings.as_home().size(); ++i) {
    sends_.emplace_back(rings.as_home()[i], rings.tx_dispatch(i));
  }
  return {};
}

Status DispatchOp::refusal(const GroupContext& group) const {
  return request_.cached ? Status() : group.handles.full();
}

void DispatchOp::withdraw(GroupContext& group) noexcept {
  group.arena->release(received_.own_rows, received_.meta);
}

// A place named before the counts are known spares every writer the wait for this rank's span: the caller's, or about
// as much as the last dispatch took. One that proves too short is replaced in place().
Result<void> DispatchOp::offer(GroupContext& group) {
  const bool callers = request_.out != nullptr && request_.out_rows != 0 &&
                       group.arena->find_output(request_.out, request_.out_rows * form_.row_bytes, rows_ref_);
  const std::uint64_t rows = callers ? request_.out_rows : forecast(group);
  if (rows == 0) return {};
  if (callers) {
    received_.rows = static_cast<std::byte*>(request_.out);
  } else {
    auto own = group.arena->allocate(ipc::SegmentKind::receive, rows * form_.row_bytes);
    if (!own) return {};  // no guess is worth a refusal: place() asks for what is needed
    received_.own_rows = *own;
    received_.rows = own->data;
    rows_ref_ = own->ref;
  }
  auto meta = group.arena->allocate(ipc::SegmentKind::receive, meta_bytes(rows));
  if (!meta) {
    if (callers) return fail(meta.error());
    group.arena->release(received_.own_rows);
    received_ = {};
    rows_ref_ = {};
    return {};
  }
  received_.meta = *meta;
  offered_rows_ = rows;
  header_.rows_span = rows_ref_.word;
  header_.meta_span = meta->ref.word;
  header_.span_rows = rows;
  return {};
}

// Rows to offer; 0 before there is anything to go by.
std::uint64_t DispatchOp::forecast(const GroupContext& group) const {
  const kernels::Route& route = handle_->route;
  if (request_.cached) return route.output_rows(group.local);
  const std::uint64_t last = group.last_rows[static_cast<std::size_t>(route.layout)];
  return last + last / 8;
}

bool DispatchOp::send(GroupContext& group, const Op* prior, bool& progressed) {
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    auto& [role, done] = sends_[i];
    if (done || (prior != nullptr && !prior->sent(i))) continue;
    const Step step = role.step(form_, handle_->route.plan, request_.data, *group.rail);
    done = step == Step::done;
    progressed |= step != Step::blocked;
  }
  return all_done(sends_);
}

// Reads the slices from the board, once: other ranks can write there, and bases, counts and padding must agree.
Result<void> DispatchOp::take_slices(GroupContext& group) {
  const std::size_t words = group.shape.slice_words(group.domain);
  auto& slices = handle_->slices;
  if (!request_.cached) slices.resize(group.shape.ranks() * words);
  for (std::uint32_t r = 0; r < group.shape.ranks(); ++r) {
    std::uint32_t* const mine = slices.data() + r * words;
    if (!request_.cached) {
      std::memcpy(mine, row_of(r).slice, words * sizeof(*mine));
    } else if (std::memcmp(mine, row_of(r).slice, words * sizeof(*mine)) != 0) {
      return fail(Code::protocol, "rank " + std::to_string(r) + " announced other counts for the cached dispatch op " +
                                      std::to_string(number()) + " than for op " + std::to_string(handle_->route.op) +
                                      ", whose routing it repeats");
    }
  }
  return {};
}

// All slices are there: where every source's rows begin.
Result<void> DispatchOp::count(GroupContext& group) {
  if (auto taken = take_slices(group); !taken) return taken;
  kernels::Route& route = handle_->route;
  const std::size_t words = group.shape.slice_words(group.domain);
  std::vector<const std::uint32_t*> slices(group.shape.ranks());
  for (std::uint32_t r = 0; r < group.shape.ranks(); ++r) slices[r] = handle_->slices.data() + r * words;
  if (!request_.cached) {
    const Status computed = route.layout == ipc::Layout::rank
                                ? route.rank_bases.compute(group.experts, group.domain, slices)
                                : route.expert_bases.compute(group.experts, group.domain, slices, route.align);
    if (!computed.ok()) return fail(computed);
  }
  received_.row_count = route.output_rows(group.local);
  received_.received = route.received_rows(group.local);
  group.last_rows[static_cast<std::size_t>(route.layout)] = received_.row_count;
  locals_.reserve(group.shape.params().channels);
  for (std::uint32_t c = 0; c < group.shape.params().channels; ++c) locals_.emplace_back(c);
  if (group.rail != nullptr) {
    const auto& rings = group.rail->rings().as_forwarder();
    const std::uint32_t channel_words = group.shape.experts_of_domain(group.domain) + group.locals();
    if (!request_.cached) {
      route.forwards.resize(rings.size());
      for (kernels::ForwardTokens& kept : route.forwards) kept.clear();
    }
    for (std::uint32_t i = 0; i < rings.size(); ++i) {
      forwards_.emplace_back(rings[i], group.rail->rings().rx_dispatch(i),
                             slices[rings[i].home][channel_words + rings[i].channel], group.experts);
    }
  }
  counted_ = true;
  return {};
}

void DispatchOp::run(void* out, std::uint64_t out_rows) {
  request_.out = out;
  request_.out_rows = out_rows;
  may_run_ = true;
  too_small_ = false;
}

bool DispatchOp::abandon() noexcept {
  abandoned_ = true;
  if (may_run_) return true;
  drop();
  return keep_data();
}

// Dense: all rows, then all side data.
bool DispatchOp::keep_data() noexcept {
  const std::size_t row = form_.row_bytes;
  const std::size_t side = request_.side_bytes;
  const std::size_t tokens = handle_->tokens;
  kept_.reset(new (std::nothrow) std::byte[tokens * (row + side)]);
  if (kept_ == nullptr) return false;
  std::byte* const sides = kept_.get() + tokens * row;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    std::memcpy(kept_.get() + t * row, request_.data.row(t), row);
    if (side != 0) std::memcpy(sides + t * side, request_.data.side_of(t), side);
  }
  const kernels::TokenData copy{kept_.get(), row, side == 0 ? nullptr : sides, side};
  request_.data = copy;
  return true;
}

// The arena takes the rows, as long as the operation uses them.
void DispatchOp::drop() noexcept {
  request_.out = nullptr;
  may_run_ = true;
  too_small_ = false;
  dropped_ = true;
}

// The place of our rows is settled; tell the domain unless the header's offer stands.
Result<void> DispatchOp::place(GroupContext& group) {
  const std::uint64_t rows = received_.row_count;
  if (request_.out != nullptr && request_.out_rows < rows) {
    if (!abandoned_) {
      may_run_ = false;
      too_small_ = true;
      return {};
    }
    drop();
  }
  placed_ = true;
  if (offered_rows_ >= rows && offered_rows_ != 0) {
    received_.fields = kernels::RowMeta(offered_rows_, handle_->route.topk, request_.side_bytes, handle_->route.layout);
    copy_out_ = request_.out != nullptr && received_.rows != request_.out;
    return {};
  }
  if (rows == 0) return {};
  group.arena->release(received_.own_rows);  // of an offer that was too short, as its metadata below
  received_.own_rows = {};
  const std::uint64_t bytes = rows * form_.row_bytes;
  if (request_.out != nullptr && group.arena->find_output(request_.out, bytes, rows_ref_)) {
    received_.rows = static_cast<std::byte*>(request_.out);
  } else {
    auto own = group.arena->allocate(ipc::SegmentKind::receive, bytes);
    if (!own) return fail(own.error());
    received_.own_rows = *own;
    received_.rows = own->data;
    rows_ref_ = own->ref;
    copy_out_ = request_.out != nullptr;
  }
  group.arena->release(received_.meta);
  received_.meta = {};
  auto meta = group.arena->allocate(ipc::SegmentKind::receive, meta_bytes(rows));
  if (!meta) return fail(meta.error());
  received_.meta = *meta;
  received_.fields = kernels::RowMeta(rows, handle_->route.topk, request_.side_bytes, handle_->route.layout);
  group.words.publish_span(group.local, number(), rows_ref_, meta->ref, rows);
  return {};
}

// Addresses of the outputs of all local ranks; false while a receiver has not said where.
Result<bool> DispatchOp::open_outputs(GroupContext& group) {
  const kernels::Route& route = handle_->route;
  outputs_.assign(group.locals(), {});
  std::uint64_t total = 0;
  for (std::uint32_t l = 0; l < group.locals(); ++l) {
    const std::uint64_t rows = route.output_rows(l);
    if (rows == 0) continue;
    const ipc::OpHeader& header = *row_of(group.rank_of_local(l)).header;
    ipc::SpanWords span{number(), header.rows_span, header.meta_span, header.span_rows};
    if (span.rows < rows && !group.words.span(l, number(), span)) return false;
    // The upper limit keeps the sizes that follow from it within 64 bits.
    if (span.rows < rows || span.rows > UINT32_MAX) {
      return fail(Code::protocol, "rank " + std::to_string(group.rank_of_local(l)) + " published room for " +
                                      std::to_string(span.rows) + " rows, " + std::to_string(rows) +
                                      " are due and 4294967295 the most");
    }
    kernels::Output& out = outputs_[l];
    out.fields = kernels::RowMeta(span.rows, route.topk, request_.side_bytes, route.layout);
    auto at = group.resolve(l, {span.rows_span}, rows * form_.row_bytes, ipc::Access::read_write);
    if (!at) return fail(at.error());
    out.rows = *at;
    auto meta = group.resolve(l, {span.meta_span}, out.fields.bytes(), ipc::Access::read_write);
    if (!meta) return fail(meta.error());
    out.meta = *meta;
    total += rows * form_.row_bytes;
  }
  writer_ = kernels::RowWriter(group.experts, group.domain, route, outputs_, form_.row_bytes,
                               kernels::store_mode_for(total), group.scratch.targets);
  opened_ = true;
  return true;
}

// Local rows and forwarded ones; when all are written, tells every receiver.
Result<bool> DispatchOp::move(GroupContext& group, const Op* prior, bool& progressed) {
  kernels::Route& route = handle_->route;
  for (std::size_t i = 0; i < forwards_.size(); ++i) {
    auto& [role, done] = forwards_[i];
    if (done || (prior != nullptr && !prior->received(i))) continue;
    auto step =
        role.step(form_, group.experts, route, *group.rail, writer_, request_.cached ? nullptr : &route.forwards[i]);
    if (!step) return fail(step.error());
    done = *step == Step::done;
    progressed |= *step != Step::blocked;
  }
  for (auto& [role, done] : locals_) {
    if (done) continue;
    const Step step = role.step(group.rank, group.domain, route.plan, request_.data, writer_, group.scratch.uses);
    done = step == Step::done;
    progressed |= step != Step::blocked;
  }
  if (!all_done(locals_) || !all_done(forwards_)) return false;
  kernels::fence();
  for (std::uint32_t l = 0; l < group.locals(); ++l) {
    group.words.finish(l, group.local, number(), writer_.written(l));
  }
  moved_ = true;
  progressed = true;
  return true;
}

bool DispatchOp::received(std::size_t ring) const {
  return counted_ && forwards_[ring].done;
}

Result<bool> DispatchOp::arrived(GroupContext& group) const {
  const ipc::GroupSegment::Finished finished = group.words.finished(group.local, number());
  if (finished.writers < group.locals()) return false;
  if (finished.count != received_.received) {
    return fail(Code::internal, "dispatch op " + std::to_string(number()) + ": " + std::to_string(finished.count) +
                                    " rows were written to rank " + std::to_string(group.rank) + ", " +
                                    std::to_string(received_.received) + " were due");
  }
  return true;
}

void DispatchOp::finish(GroupContext& group) {
  pad(group);
  if (copy_out_) {
    kernels::copy_row(request_.out, received_.rows, received_.row_count * form_.row_bytes,
                      kernels::StoreMode::temporal);
    group.arena->release(received_.own_rows);
    received_.own_rows = {};
    received_.rows = static_cast<std::byte*>(request_.out);
  } else if (received_.own_rows.data != nullptr) {
    group.arena->trim(received_.own_rows, received_.row_count * form_.row_bytes);
  }
  if (request_.cached) {
    if (handle_->cached) handle_->give_back(*handle_->cached);
    handle_->cached = received_;
    return;
  }
  handle_->received = received_;
  handle_->state = Handle::State::ready;
}

// Padding rows are the receiver's to write: zero bytes, rank, token and slot -1, weight 0.
void DispatchOp::pad(GroupContext& group) {
  const kernels::Route& route = handle_->route;
  const auto mine = group.experts.experts_on(group.rank);
  auto& counts = handle_->expert_counts;
  if (!request_.cached) {
    counts.assign(mine.size(), 0);
    handle_->expert_offsets.assign(mine.size() + 1, 0);
    handle_->expert_offsets64.assign(mine.size() + 1, 0);
  }
  const std::uint32_t first = group.experts.first_dense(group.rank);
  const std::size_t words = group.shape.slice_words(group.domain);
  std::uint64_t end = 0;
  for (std::uint32_t e = 0; e < mine.size(); ++e) {
    std::uint32_t rows = 0;
    for (std::uint32_t r = 0; r < group.shape.ranks(); ++r) rows += handle_->slices[r * words + first + e];
    std::uint64_t next = end + rows;
    if (route.layout == ipc::Layout::expert) {
      const std::uint64_t from = route.expert_bases.end(first + e);
      next = (end + rows + route.align - 1) / route.align * route.align;
      kernels::zero_rows(received_.rows + from * form_.row_bytes, (next - from) * form_.row_bytes,
                         kernels::StoreMode::temporal);
      for (std::uint64_t row = from; row < next; ++row) {
        *received_.fields.rank(received_.meta.data, row) = -1;
        *received_.fields.token(received_.meta.data, row) = -1;
        *received_.fields.slot(received_.meta.data, row) = -1;
        *received_.fields.weight(received_.meta.data, row) = 0;
        std::memset(received_.fields.side(received_.meta.data, row), 0, request_.side_bytes);
      }
    }
    if (!request_.cached) {
      counts[e] = static_cast<std::int32_t>(rows);
      handle_->expert_offsets[e + 1] = static_cast<std::int32_t>(next);
      handle_->expert_offsets64[e + 1] = static_cast<std::int64_t>(next);
    }
    end = next;
  }
}

void DispatchOp::cancel() {
  if (!request_.cached) handle_->state = Handle::State::failed;
}

Waiting DispatchOp::waiting(const GroupContext& group) const {
  if (!counted_) return waiting_for_headers(group);
  if (!may_run_) return {ipc::WaitPhase::run, static_cast<std::uint16_t>(group.rank), 0, 1};
  if (!opened_) {
    for (std::uint32_t l = 0; l < group.locals(); ++l) {
      ipc::SpanWords span{};
      if (handle_->route.output_rows(l) == 0 || group.words.span(l, number(), span)) continue;
      return {ipc::WaitPhase::span, static_cast<std::uint16_t>(group.rank_of_local(l)), 0, 1};
    }
  }
  for (const auto& [role, done] : forwards_) {
    if (!done) return {ipc::WaitPhase::rows, role.ring().home, role.taken(), role.expected()};
  }
  for (const auto& [role, done] : sends_) {
    if (!done) return {ipc::WaitPhase::credits, role.ring().peer, 0, 1};
  }
  for (std::uint32_t l = 0; l < group.locals(); ++l) {
    if (group.words.has_finished(group.local, l, number())) continue;
    return {ipc::WaitPhase::rows, static_cast<std::uint16_t>(group.rank_of_local(l)),
            group.words.finished(group.local, number()).writers, group.locals()};
  }
  return {};
}

}  // namespace railhead::client
