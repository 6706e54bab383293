#include "client/group.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "client/arguments.hpp"

namespace railhead::client {
namespace {

constexpr Milliseconds kDefaultOpTimeout = 1'800'000;
// Of a daemon that answers at all: it gives the other hosts 50 ms to say what they completed.
constexpr std::chrono::seconds kEndWait{10};

// The operation, if it is a dispatch of this handle; else null.
std::shared_ptr<DispatchOp> dispatch_of(const std::shared_ptr<Op>& op, const std::shared_ptr<Handle>& handle) {
  if (op->kind() != ipc::OpKind::dispatch) return nullptr;
  auto dispatch = std::static_pointer_cast<DispatchOp>(op);
  return dispatch->handle() == handle ? dispatch : nullptr;
}

}  // namespace

Result<std::shared_ptr<Group>> Group::create(std::shared_ptr<Session> session, const rh_unique_id& id,
                                             const rh_group_config& config) {
  auto params = group_params(config);
  if (!params) return fail(params.error());
  const std::vector<std::uint8_t> bytes(std::begin(id.bytes), std::end(id.bytes));
  auto joined = session->link().join(bytes, config.rank, *params, ipc::bounded_ms(config.join_timeout_ms));
  if (!joined) return fail(joined.error());
  std::shared_ptr<Group> group(new Group(std::move(session), joined->member));
  if (auto ready = group->set_up(*joined, config, *params); !ready) {
    // The others may have the group already: what ends it for them is this, not that a rank left.
    const Status& why = ready.error();
    group->session_->link().abort(group->member_, {why.code(), "rank " + std::to_string(config.rank) +
                                                                   " could not complete the group: " + why.message()});
    return fail(why);
  }
  return group;
}

Result<void> Group::set_up(const JoinResult& joined, const rh_group_config& config, const ipc::GroupParams& params) {
  op_timeout_ = config.op_timeout_ms == 0 ? kDefaultOpTimeout : config.op_timeout_ms;
  join_timeout_ = ipc::bounded_ms(config.join_timeout_ms);
  ipc::GroupShape shape(params, joined.map);
  auto experts = kernels::ExpertMap::create(params.experts, joined.map.domain_of_rank, shape.expert_rank());
  if (!experts) return fail(experts.error());
  const std::uint16_t domain = shape.domain_of(config.rank);
  const std::uint16_t local = shape.local_of(config.rank);
  context_.reset(new GroupContext{// NOLINT(modernize-make-unique): make_unique takes no braces
                                  std::move(shape),
                                  std::move(*experts),
                                  joined.name,
                                  config.rank,
                                  domain,
                                  local,
                                  {},
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  {},
                                  HandleList(params.max_handles)});

  std::vector<SegmentOffer> offers;
  if (context_->shape.domains() > 1) {
    if (auto few = ipc::check_rings(context_->shape, config.rank); !few) return few;
    const ipc::RailSegmentLayout layout(context_->shape, config.rank);
    auto rail = ipc::Segment::create("railhead-rail", layout.bytes());
    if (!rail) return fail(rail.error());
    rail_memory_ = std::move(*rail);
    offers.push_back({ipc::SegmentKind::rail, 0, rail_memory_.bytes(), rail_memory_.fd()});
  }
  auto attached = session_->link().attach(member_, offers, join_timeout_);
  if (!attached) return fail(attached.error());
  if (auto mapped = map_words(std::move(*attached), joined.proxy); !mapped) return mapped;

  context_->arena =
      std::make_shared<Arena>([this](ipc::SegmentKind kind, std::uint8_t id, const ipc::Segment& segment) {
        return session_->link().add_segment(member_, {kind, id, segment.bytes(), segment.fd()});
      });
  context_->peers = std::make_unique<PeerArenas>(
      context_->locals(), [this](std::uint32_t peer, std::uint8_t id) -> Result<ipc::Segment> {
        auto segment = session_->link().peer_segment(member_, context_->rank_of_local(peer), id);
        if (!segment) return fail(segment.error());
        const auto access =
            segment->kind == ipc::SegmentKind::receive ? ipc::Access::read_write : ipc::Access::read_only;
        return ipc::Segment::map(std::move(segment->fd), segment->bytes, access, ipc::Prefault::yes);
      });
  // Each live handle and each operation in flight adds at most one, so that a release finds its room made.
  context_->releases.reserve(std::size_t{params.max_handles} + params.depth);
  engine_ = std::make_unique<Engine>(
      *context_, EngineHooks{[this] { return session_->link().alive(); },
                             [this](const Status& reason) { session_->link().abort(member_, reason); }});
  if (config.receive_bytes != 0) {
    if (auto done = context_->arena->reserve(ipc::SegmentKind::receive, config.receive_bytes); !done) return done;
  }
  if (config.combine_bytes != 0) {
    if (auto done = context_->arena->reserve(ipc::SegmentKind::combine, config.combine_bytes); !done) return done;
  }
  return {};
}

Result<void> Group::map_words(AttachResult attached, std::uint32_t proxy) {
  const auto map = [](ipc::UniqueFd fd, std::uint64_t bytes) {
    return ipc::Segment::map(std::move(fd), bytes, ipc::Access::read_write, ipc::Prefault::yes);
  };
  const ipc::GroupSegmentLayout layout(context_->shape, context_->domain);
  auto words = map(std::move(attached.group_words), layout.bytes());
  if (!words) return fail(words.error());
  group_words_ = std::move(*words);
  context_->words = ipc::GroupSegment(group_words_.data(), context_->shape, context_->domain);
  if (context_->shape.domains() == 1) return {};

  const ipc::RailWordsLayout rail_layout(context_->shape, context_->rank);
  auto rail = map(std::move(attached.rail_words), rail_layout.bytes());
  if (!rail) return fail(rail.error());
  rail_words_ = std::move(*rail);
  auto client = ipc::RailWordsClient::attach(rail_words_.data(), rail_layout, attached.generation);
  if (!client) return fail(client.error());
  context_->rail = std::make_unique<kernels::RailPort>(context_->shape, context_->rank, rail_memory_.data(), *client,
                                                       [this, proxy] { session_->link().ring_bell(proxy); });
  return {};
}

Group::~Group() {
  close();
}

void Group::close() {
  if (closed_) return;
  closed_ = true;
  if (engine_ != nullptr) engine_->stop();
  (void)session_->link().leave(member_);
}

// One look at the clock for both: a look is a fiftieth of a one-token operation.
Call Group::called_now() const {
  const std::uint64_t now = ipc::steady_ns();
  if (op_timeout_ >= ipc::kForeverMs) return {now, ipc::Deadline::never()};
  return {now, ipc::Deadline(ipc::Deadline::Clock::time_point(std::chrono::nanoseconds(now)) +
                             std::chrono::milliseconds(op_timeout_))};
}

Status Group::refuse(const Status& reason, std::uint64_t planned) {
  session_->link().refused(member_, planned != 0 ? planned : engine_->next_number(), planned != 0, reason.message());
  const std::string text = "rank " + std::to_string(context_->rank) + ": the call did not happen: " + reason.message();
  if (context_->shape.params().abort_on_refusal) {
    session_->link().abort(
        member_, {Code::aborted, "aborted by rank " + std::to_string(context_->rank) + ": " + reason.message()});
  }
  return {reason.code(), text};
}

Status Group::behind_planned(std::uint64_t planned) {
  return refuse({Code::invalid_usage, "op " + std::to_string(planned) +
                                          " is planned and not run: operations complete in order, so a blocking call "
                                          "would wait for itself; call rh_dispatch_run first, or pass an event"});
}

// One look at the engine for all: taking its lock is a fiftieth of a one-token operation.
Status Group::may_begin(const Handle* routing, Then then) {
  std::uint64_t planned = 0;
  Handle::State state = Handle::State::ready;
  std::int64_t ended_by = -1;
  std::uint64_t number = 0;
  Status ended = engine_->unless_ended([&](std::uint64_t waits_for_caller) {
    planned = waits_for_caller;
    if (routing == nullptr) return;
    state = routing->state;
    ended_by = routing->ended_by;
    number = routing->route.op;
  });
  if (!ended.ok()) return ended;
  if (planned != 0 && then != Then::goes_on) return behind_planned(planned);
  if (state != Handle::State::ready) {
    return refuse({Code::invalid_usage, "the handle's dispatch (op " + std::to_string(number) + ") is not complete"});
  }
  if (ended_by >= 0) {
    return refuse({Code::invalid_usage,
                   "rank " + std::to_string(ended_by) + " released the handle of op " + std::to_string(number)});
  }
  return {};
}

Result<std::shared_ptr<DispatchOp>> Group::make_dispatch(const rh_dispatch_args& args,
                                                         const std::shared_ptr<Handle>& cached, Then then) {
  if (const Status may = may_begin(cached.get(), then); !may.ok()) return fail(may);
  auto input = dispatch_input(*context_, args, cached.get());
  if (!input) return fail(refuse(input.error()));
  std::shared_ptr<Handle> handle = cached;
  if (handle == nullptr) {
    handle = std::make_shared<Handle>(context_->arena, spare_tables_);
    handle->route.layout = input->layout;
    handle->route.align = input->align;
    handle->route.topk = context_->shape.params().topk;
    handle->tokens = input->routing.tokens;
    if (Status built = handle->route.plan.build(input->routing, context_->experts, context_->shape.params().channels);
        !built.ok()) {
      return fail(refuse(built));
    }
  }
  input->request.plan_only = then == Then::makes_room;
  return std::make_shared<DispatchOp>(std::move(handle), input->request, called_now());
}

Status Group::start(const std::shared_ptr<Op>& op, Carried carried) {
  Status started = engine_->start(op, carried);
  if (started.ok() || !engine_->status().ok()) return started;
  return refuse(started);
}

Result<std::shared_ptr<Op>> Group::make_combine(const rh_combine_args& args, std::shared_ptr<Handle> handle,
                                                Then then) {
  if (const Status may = may_begin(handle.get(), then); !may.ok()) return fail(may);
  auto request = combine_input(*context_, args, *handle);
  if (!request) return fail(refuse(request.error()));
  return std::make_shared<CombineOp>(std::move(handle), *request, called_now());
}

Result<std::shared_ptr<DispatchOp>> Group::planned(const std::shared_ptr<Handle>& handle, Then then) {
  std::shared_ptr<DispatchOp> oldest;
  std::uint64_t first = 0;
  Status ended = engine_->unless_ended([&](std::uint64_t waits_for_caller) {
    first = waits_for_caller;
    for (const auto& op : engine_->in_flight_locked()) {
      auto dispatch = dispatch_of(op, handle);
      if (oldest == nullptr && dispatch != nullptr && dispatch->waits_for_caller()) oldest = std::move(dispatch);
    }
  });
  if (!ended.ok()) return fail(ended);
  if (oldest == nullptr) {
    return fail(refuse({Code::invalid_usage, "the handle has no planned dispatch that waits for rh_dispatch_run"}));
  }
  if (then == Then::waits && first != oldest->number()) return fail(behind_planned(first));
  return oldest;
}

Result<bool> Group::run(const std::shared_ptr<DispatchOp>& op, void* out, std::uint64_t out_rows) {
  if (out != nullptr && out_rows > UINT32_MAX) return fail(refuse(too_many_rows(out_rows), op->number()));
  auto done = engine_->locked([&]() -> Result<bool> {
    if (!op->waits_for_caller()) return false;
    if (out != nullptr && out_rows < op->output_rows()) {
      return fail(Code::limit_exceeded, "out holds " + std::to_string(out_rows) + " rows, this rank receives " +
                                            std::to_string(op->output_rows()) +
                                            "; call rh_dispatch_run with a larger output");
    }
    op->run(out, out_rows);
    return true;
  });
  if (!done) return fail(refuse(done.error(), op->number()));
  if (*done) engine_->nudge();
  return done;
}

void Group::fill(const DispatchOp& op, rh_dispatch_result& result) const {
  const Handle& handle = *op.handle();
  const Received& got = op.output();
  const kernels::RowMeta& fields = got.fields;
  std::byte* const meta = got.meta.data;
  const bool any = got.row_count != 0;
  const bool by_rank = handle.route.layout == ipc::Layout::rank;
  rh_dispatch_result out{};
  out.size = sizeof(out);
  out.rows = got.rows;
  out.row_count = got.row_count;
  out.received = got.received;
  out.local_experts = static_cast<std::uint32_t>(handle.expert_counts.size());
  if (any) {
    out.row_rank = fields.rank(meta, 0);
    out.row_token = fields.token(meta, 0);
    out.row_slot = fields.slot(meta, 0);
    out.row_weight = fields.weight(meta, 0);
    out.local_ids = by_rank ? fields.ids(meta, 0) : nullptr;
    out.local_weights = by_rank ? fields.id_weights(meta, 0) : nullptr;
    out.side = fields.side_bytes() != 0 ? fields.side(meta, 0) : nullptr;
  }
  out.expert_counts = handle.expert_counts.data();
  out.expert_offsets = handle.expert_offsets.data();
  out.expert_offsets64 = handle.expert_offsets64.data();
  const std::size_t size = std::min(result.size == 0 ? sizeof(out) : result.size, sizeof(out));
  std::memcpy(&result, &out, size);
}

void Group::release(const std::shared_ptr<Handle>& handle) {
  bool waited = false;
  std::shared_ptr<DispatchOp> reads_on;  // from the caller's memory; the newest, as operations complete in order
  engine_->locked([&] {
    context_->releases.push_back({handle->route.op, engine_->next_number_locked()});
    context_->handles.release();
    for (const auto& op : engine_->in_flight_locked()) {
      const auto dispatch = dispatch_of(op, handle);
      if (dispatch == nullptr) continue;
      waited |= dispatch->waits_for_caller();
      if (!dispatch->abandon()) reads_on = dispatch;
    }
  });
  if (!waited) return;
  (void)engine_->detach();  // without one the group has ended, and nothing waits any more
  engine_->nudge();
  if (reads_on == nullptr) return;
  // At its deadline it ends on all ranks.
  (void)engine_->wait(ipc::Deadline::never(), [&] { return reads_on->concluded(); });
}

void Group::abort(const std::string& reason) {
  session_->link().abort(member_, {Code::aborted, "aborted by rank " + std::to_string(context_->rank) + ": " + reason});
  // So that no call after this one still begins; what ends a wait is the group's end.
  (void)engine_->wait(ipc::Deadline::after(kEndWait), [] { return false; });
}

void Group::describe(rh_group_info& info) {
  const ipc::GroupShape& shape = context_->shape;
  rh_group_info out{};
  out.size = sizeof(out);
  out.ranks = shape.ranks();
  out.rank = context_->rank;
  out.domains = shape.domains();
  out.domain = context_->domain;
  out.local_ranks = context_->locals();
  out.local_rank = context_->local;
  out.experts = shape.params().experts;
  out.local_experts = static_cast<std::uint32_t>(context_->experts.experts_on(context_->rank).size());
  out.epoch = shape.epoch();
  out.registered_bytes = rail_memory_.bytes();
  out.receive_bytes = context_->arena->bytes(ipc::SegmentKind::receive);
  out.combine_bytes = context_->arena->bytes(ipc::SegmentKind::combine);
  out.completed = engine_->completed();
  const std::size_t size = std::min(info.size == 0 ? sizeof(out) : info.size, sizeof(out));
  std::memcpy(&info, &out, size);
}

}  // namespace railhead::client
