#include "client/combine_op.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace railhead::client {

using kernels::Step;

Result<Step> CombineOp::step(GroupContext& group, const Op* prior) {
  bool progressed = false;
  form_.op = number();
  if (!published()) {
    if (!publish(group, handle_->route.plan)) return Step::blocked;
    progressed = true;
  }
  if (!have_all()) {
    auto have = collect(group);
    if (!have) return fail(have.error());
    progressed |= *have;
  }
  if (!opened_ && have_locals()) {
    if (auto open = open_inputs(group); !open) return fail(open.error());
    progressed = true;
  }
  if (opened_ && !pulled_all_) {
    auto pulled = pull(group, prior, progressed);
    if (!pulled) return fail(pulled.error());
  }
  if (pulled_all_ && have_all()) {
    auto complete = released(group);
    if (!complete) return fail(complete.error());
    if (*complete) return Step::done;
  }
  return progressed ? Step::progressed : Step::blocked;
}

Result<void> CombineOp::prepare(GroupContext& group) {
  const kernels::Route& route = handle_->route;
  form_.epoch = group.shape.epoch();
  form_.element = request_.type;
  form_.wire = request_.wire;
  form_.weighted = request_.weighted;
  form_.hidden = group.shape.params().hidden;
  form_.stride = group.shape.combine_record_bytes(static_cast<std::uint32_t>(kernels::size_of(request_.wire)));
  form_.y = request_.y;
  form_.y_pitch = request_.y_pitch;

  header_.layout = static_cast<std::uint8_t>(route.layout);
  header_.element = static_cast<std::uint8_t>(request_.type);
  header_.wire = static_cast<std::uint8_t>(request_.wire);
  header_.flags = request_.weighted ? ipc::kFlagWeighted : 0;
  header_.handle_op = route.op;
  header_.tokens = handle_->tokens;
  const std::uint64_t bytes = handle_->row_count(group.local) * form_.row_bytes();
  if (bytes == 0) return {};
  ipc::SpanRef ref;
  if (!group.arena->find(request_.rows, bytes, ref)) {
    auto staged = group.arena->allocate(ipc::SegmentKind::combine, bytes);
    if (!staged) return fail(staged.error());
    staged_ = *staged;
    kernels::copy_row(staged_.data, request_.rows, bytes, kernels::StoreMode::temporal);
    ref = staged_.ref;
  }
  header_.rows_span = ref.word;
  return {};
}

// All rows of this domain lie ready: where they are, and the roles that pull them.
Result<void> CombineOp::open_inputs(GroupContext& group) {
  inputs_.resize(group.locals());
  std::uint64_t total = 0;
  for (std::uint32_t l = 0; l < group.locals(); ++l) {
    const std::uint64_t bytes = handle_->row_count(l) * form_.row_bytes();
    if (bytes == 0) continue;
    total += bytes;
    auto at = group.resolve(l, {row_of(group.rank_of_local(l)).header->rows_span}, bytes, ipc::Access::read_only);
    if (!at) return fail(at.error());
    inputs_[l].rows = *at;
  }
  form_.y_mode = kernels::store_mode_for(total);
  const std::uint32_t channels = group.shape.params().channels;
  std::vector<std::uint32_t> rings(group.rail != nullptr ? group.shape.domains() : 0);  // none without other domains
  homes_.reserve(channels);
  for (std::uint32_t c = 0; c < channels; ++c) {
    if (group.rail != nullptr) {
      const auto& as_home = group.rail->rings().as_home();
      for (std::uint32_t i = 0; i < as_home.size(); ++i) {
        if (as_home[i].channel == c) rings[as_home[i].domain] = group.rail->rings().rx_combine(i);
      }
    }
    homes_.emplace_back(group.rank, group.domain, c, rings);
  }
  if (group.rail != nullptr) {
    const auto& as_forwarder = group.rail->rings().as_forwarder();
    for (std::uint32_t i = 0; i < as_forwarder.size(); ++i) {
      returns_.emplace_back(as_forwarder[i], group.rail->rings().tx_combine(i));
    }
  }
  opened_ = true;
  return {};
}

// Foreign tokens first: their partials have a network to cross.
Result<bool> CombineOp::pull(GroupContext& group, const Op* prior, bool& progressed) {
  const kernels::Route& route = handle_->route;
  for (std::size_t i = 0; i < returns_.size(); ++i) {
    auto& [role, done] = returns_[i];
    if (done || (prior != nullptr && !prior->sent(i))) continue;
    const Step step = role.step(form_, route.forwards[i], *group.rail, inputs_);
    done = step == Step::done;
    progressed |= step != Step::blocked;
  }
  for (std::size_t c = 0; c < homes_.size(); ++c) {
    auto& [role, done] = homes_[c];
    if (done || (prior != nullptr && !prior->received(c))) continue;
    auto step = role.step(form_, route, group.rail.get(), inputs_, group.scratch);
    if (!step) return fail(step.error());
    done = *step == Step::done;
    progressed |= *step != Step::blocked;
  }
  if (!all_done(homes_) || !all_done(returns_)) return false;
  kernels::fence();
  for (std::uint32_t l = 0; l < group.locals(); ++l) group.words.finish(l, group.local, number(), inputs_[l].pulled);
  pulled_all_ = true;
  progressed = true;
  return true;
}

// Everybody has taken our rows: they may be reused.
Result<bool> CombineOp::released(GroupContext& group) const {
  const ipc::GroupSegment::Finished finished = group.words.finished(group.local, number());
  if (finished.writers < group.locals()) return false;
  const std::uint64_t due = handle_->route.received_rows(group.local);
  if (finished.count != due) {
    return fail(Code::internal, "combine op " + std::to_string(number()) + ": " + std::to_string(finished.count) +
                                    " rows of rank " + std::to_string(group.rank) + " were pulled, " +
                                    std::to_string(due) + " were due");
  }
  return true;
}

void CombineOp::finish(GroupContext& group) {
  group.arena->release(staged_);
}

std::uint64_t CombineOp::rows() const {
  std::uint64_t sum = 0;
  for (const kernels::Input& input : inputs_) sum += input.pulled;
  return sum;
}

Waiting CombineOp::waiting(const GroupContext& group) const {
  if (!have_locals() || !published()) return waiting_for_headers(group);
  for (const auto& [role, done] : homes_) {
    if (done) continue;
    return {ipc::WaitPhase::partials, group.shape.ranks_of(role.waiting_for()).front(), role.token(), handle_->tokens};
  }
  for (const auto& [role, done] : returns_) {
    if (!done) return {ipc::WaitPhase::credits, role.ring().peer, 0, 1};
  }
  if (!have_all()) return waiting_for_headers(group);
  for (std::uint32_t l = 0; l < group.locals(); ++l) {
    if (group.words.has_finished(group.local, l, number())) continue;
    return {ipc::WaitPhase::pulls, static_cast<std::uint16_t>(group.rank_of_local(l)),
            group.words.finished(group.local, number()).writers, group.locals()};
  }
  return {};
}

}  // namespace railhead::client
