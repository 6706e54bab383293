#include "client/engine.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "client/signals.hpp"
#include "ipc/shared_word.hpp"

namespace railhead::client {

using kernels::Step;

namespace {

const std::string_view kNoCode = code_name(static_cast<Code>(-1));

template <class F>
struct AtExit {
  F call;
  ~AtExit() { call(); }
};
template <class F>
AtExit(F) -> AtExit<F>;  // not every compiler deduces it for an aggregate

}  // namespace

Engine::Engine(GroupContext& group, EngineHooks hooks)
    : group_(group),
      hooks_(std::move(hooks)),
      policy_(ipc::WaitPolicy::for_load(group.locals() + (group.rail != nullptr ? 1 : 0),
                                        std::max(1U, std::thread::hardware_concurrency()))),
      no_memory_(Code::out_of_memory, "rank " + std::to_string(group.rank) +
                                          " found no memory for its bookkeeping in the middle of an operation, and the "
                                          "group cannot go on"),
      closed_(Code::aborted, "rank " + std::to_string(group.rank) + " closed the group while this call waited") {
  in_flight_.reserve(group.shape.params().depth);
}

Engine::~Engine() {
  stop();
}

Status Engine::start(const std::shared_ptr<Op>& op, Carried carried) {
  // The caller's own next step is what would make room.
  const auto stuck = [this] { return !in_flight_.empty() && in_flight_.front()->waits_for_caller(); };
  // Others may wait for what this caller does once it hears that it is refused: it does not wait for them.
  const auto must_wait = [&] { return !has_room_locked() && !stuck() && op->refusal(group_).ok(); };
  std::unique_lock lock(mutex_);
  // Again where another thread was quicker to take the room.
  while (end_.ok() && must_wait()) {
    lock.unlock();
    if (!wait(op->deadline(), [&] { return !must_wait(); })) {
      return {Code::timeout, "no room for another operation: " + std::to_string(group_.shape.params().depth) +
                                 " are in flight (the group's depth) and none completed in time"};
    }
    op->waited_for_room();
    lock.lock();
  }
  if (!end_.ok()) return end_;
  if (Status refused = op->refusal(group_); !refused.ok()) return refused;
  if (!has_room_locked()) {
    return {Code::invalid_usage, "op " + std::to_string(in_flight_.front()->number()) +
                                     " is planned and not run, and no more than " +
                                     std::to_string(group_.shape.params().depth) +
                                     " operations fly at a time (the group's depth); call rh_dispatch_run first"};
  }
  if (carried == Carried::by_progress_thread) {
    if (Status none = start_progress_locked(); !none.ok()) return none;
  }
  bool prepared = false;
  const AtExit or_withdraw{[&] {
    if (!prepared) op->withdraw(group_);
  }};
  if (auto ready = op->prepare(group_); !ready) return ready.error();
  prepared = true;
  // From here on nothing throws: the others count on this operation.
  in_flight_.push_back(op);
  op->admit(group_, next_op_++);
  step_locked();
  return {};
}

bool Engine::has_room_locked() const {
  return in_flight_.size() < group_.shape.params().depth;
}

bool Engine::wait(ipc::Deadline deadline, const std::function<bool()>& done) {
  {
    const std::lock_guard lock(mutex_);
    if (done() || !end_.ok()) return true;
    ++waiters_;
  }
  ipc::WakeWord& word = group_.words.live(group_.local).wake;
  bool finished = false;
  bool in_time = true;
  bool left = false;
  const auto leave = [&] {
    left = true;
    leave_locked();
  };
  // Also when an exception ends the wait: a waiter that never leaves would keep the progress thread from stepping.
  const AtExit leave_anyway{[&] {
    if (left) return;
    const std::lock_guard lock(mutex_);
    leave();
  }};
  std::uint32_t idle = 0;  // looks since anything moved
  // True ends one round of waiting: finished, or something moved and the spin budget starts anew.
  const auto look = [&] {
    const std::lock_guard lock(mutex_);
    const bool moved = step_locked();
    finished = done() || !end_.ok();
    idle = moved ? 0 : idle + 1;
    if (finished) {
      leave();
    } else if (idle > policy_.spins) {
      note_waiting_locked();
    }
    return finished || moved;
  };
  while (!finished && in_time) {
    // Also while something moves: what moves may go on for longer than anybody wants to wait.
    in_time = ipc::wait_until(word, ipc::kWakeAnyEvent, deadline, policy_, look) != ipc::WaitResult::timeout &&
              !deadline.expired();
    if (finished) break;
    const std::lock_guard lock(mutex_);
    check_world_locked();
    finished = done() || !end_.ok();
    if (finished) leave();
  }
  return finished;
}

void Engine::leave_locked() {
  --waiters_;
  if (detached_ && waiters_ == 0) progress_wanted_.notify_one();
}

void Engine::poll() {
  const std::lock_guard lock(mutex_);
  step_locked();
  check_world_locked();
}

void Engine::nudge() {
  ipc::notify(group_.words.live(group_.local).wake, ipc::kWakeAnyEvent);
}

Status Engine::detach() {
  const std::lock_guard lock(mutex_);
  if (!end_.ok()) return {};  // nothing is in flight
  or_end_locked([this] {
    if (Status none = start_progress_locked(); !none.ok()) fail_locked(std::move(none));
  });
  if (!end_.ok()) return end_;
  detached_ = true;
  progress_wanted_.notify_one();
  return {};
}

Status Engine::start_progress_locked() {
  if (progress_.joinable()) return {};
  try {
    progress_ = std::thread([this] { progress_loop(); });
  } catch (const std::system_error& e) {
    return system_status("the progress thread of rank " + std::to_string(group_.rank) +
                             " cannot be started (look at ulimit -u and the cgroup's pids.max)",
                         e.code().value());
  }
  return {};
}

void Engine::progress_loop() {
  block_all_signals();
  ipc::WakeWord& word = group_.words.live(group_.local).wake;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (in_flight_.empty()) detached_ = false;
    progress_wanted_.wait(lock, [this] { return stopping_ || (detached_ && waiters_ == 0 && end_.ok()); });
    if (stopping_) return;
    lock.unlock();
    const auto look = [&] {
      const std::lock_guard inner(mutex_);
      const bool moved = step_locked();
      const bool idle = stopping_ || waiters_ != 0 || in_flight_.empty() || !end_.ok();
      if (!idle && !moved) note_waiting_locked();
      return idle || moved;
    };
    ipc::wait_until(word, ipc::kWakeAnyEvent, ipc::Deadline::never(), policy_, look);
    lock.lock();
    check_world_locked();
  }
}

template <class F>
void Engine::or_end_locked(F&& f) {
  try {
    f();
  } catch (const std::bad_alloc&) {
    fail_locked(std::move(no_memory_));
  }
}

bool Engine::step_locked() {
  if (!end_.ok() || in_flight_.empty()) return false;
  bool moved = true;  // also when it ends the group
  or_end_locked([&] { moved = step_all_locked(); });
  return moved;
}

// Half an operation is done and cannot be taken back.
void Engine::fail_locked(Status reason) {
  if (ending_) return;
  ending_ = true;
  try {
    hooks_.abort_group(reason);
  } catch (const std::exception&) {
    // The others learn it when this rank leaves, or at their deadline.
  }
  end_locked(std::move(reason));
}

bool Engine::step_all_locked() {
  bool moved = false;
  for (std::size_t i = 0; i < in_flight_.size(); ++i) {
    const Op* prior = nullptr;
    for (std::size_t j = i; j-- > 0 && prior == nullptr;) {
      if (in_flight_[j]->kind() == in_flight_[i]->kind()) prior = in_flight_[j].get();
    }
    auto step = in_flight_[i]->step(group_, prior);
    if (!step) {
      fail_locked(step.error());
      return true;
    }
    moved |= *step == Step::progressed;
    if (*step == Step::done && i == 0) {
      moved |= complete_front_locked();
      break;  // indices moved
    }
  }
  if (group_.rail != nullptr) group_.rail->flush();
  if (group_.words.poisoned()) end_locked(poison_status());
  return moved;
}

// False while it may not count as complete: the caller has to look at the world, not to try again.
bool Engine::complete_front_locked() {
  // Before the window moves on: finish() still reads the board.
  in_flight_.front()->finish_once(group_);
  // Frozen: the epoch ended before this operation counted as complete, and its poison is on the way.
  if (!group_.words.complete(group_.local, in_flight_.front()->number())) return false;
  const std::shared_ptr<Op> op = std::move(in_flight_.front());
  in_flight_.erase(in_flight_.begin());
  op->conclude({});
  const std::uint64_t sent = group_.rail != nullptr ? group_.rail->bytes_sent() : 0;
  records_[recorded_++ % kRecords] = {op->number(), op->kind(), op->times(), op->rows(), sent - rail_bytes_before_};
  rail_bytes_before_ = sent;
  // relaxed: counters for diagnostics.
  ipc::LiveWords& live = group_.words.live(group_.local);
  ipc::store_relaxed(live.operations, op->number());
  ipc::store_relaxed(live.rows, live.rows + op->rows());
  ipc::store_relaxed(live.rail_bytes, sent);
  return true;
}

void Engine::check_world_locked() {
  if (!end_.ok()) return;
  or_end_locked([this] { look_at_world_locked(); });
}

void Engine::look_at_world_locked() {
  // Read first: the daemon sets it after the poison word, so that alone it is not the daemon's.
  const bool wake_poisoned = ipc::is_poisoned(group_.words.live(group_.local).wake);
  if (group_.words.poisoned()) {
    end_locked(poison_status());
  } else if (wake_poisoned && !ending_) {
    fail_locked({Code::protocol, "a rank of this host wrote into the wake word of rank " + std::to_string(group_.rank) +
                                     "; the group cannot go on"});
  } else if (!hooks_.daemon_alive()) {
    end_locked({Code::daemon_lost,
                "the daemon of this host is gone; every operation of the group ends, open the session again"});
  } else if (!in_flight_.empty() && in_flight_.front()->deadline().expired() && !ending_) {
    fail_locked(late(*in_flight_.front()));
  }
}

void Engine::end_locked(Status reason) {
  if (!end_.ok()) return;
  end_ = std::move(reason);
  for (const auto& op : in_flight_) {
    op->cancel();
    op->conclude(end_);
  }
  in_flight_.clear();
  // release: no store to a peer's memory follows this one.
  ipc::store_release(group_.words.live(group_.local).quiet, std::uint64_t{1});
}

Status Engine::poison_status() const {
  const ipc::Poison poison = group_.words.poison();
  // Ranks can write the word, too: no value of it makes an unfinished operation a good one.
  const bool names_an_end =
      poison.code != Code::ok && poison.code != Code::in_progress && code_name(poison.code) != kNoCode;
  return {names_an_end ? poison.code : Code::protocol, group_.words.end_text()};
}

Status Engine::late(const Op& op) const {
  const Waiting w = op.waiting(group_);
  std::string text = "group " + group_.name + ": rank " + std::to_string(group_.rank) + " gave up on " +
                     op_name(op.kind()) + " op " + std::to_string(op.number()) + " at its deadline: in phase " +
                     ipc::phase_name(w.phase);
  if (w.peer != ipc::Poison::kNoRank) text += ", waiting for rank " + std::to_string(w.peer);
  text +=
      ", got " + std::to_string(w.got) + " of " + std::to_string(w.of) + "; look at that rank, or raise op_timeout_ms";
  return {Code::timeout, text};
}

void Engine::note_waiting_locked() {
  if (in_flight_.empty()) return;
  const Op& op = *in_flight_.front();
  const Waiting w = op.waiting(group_);
  ipc::LiveWords& live = group_.words.live(group_.local);
  const std::uint64_t packed = (static_cast<std::uint64_t>(w.phase) << 56) |
                               (static_cast<std::uint64_t>(w.peer) << 40) | ((w.got & 0xfffffULL) << 20) |
                               (w.of & 0xfffffULL);
  // relaxed: for diagnostics; a mixed set is a stale line.
  if (live.waiting_op == op.number() && live.waiting_for == packed) return;
  ipc::store_relaxed(live.waiting_for, packed);
  ipc::store_relaxed(live.waiting_since_ns, ipc::steady_ns());
  ipc::store_relaxed(live.waiting_op, op.number());
}

std::uint64_t Engine::waits_for_caller_locked() const {
  const auto found =
      std::find_if(in_flight_.begin(), in_flight_.end(), [](const auto& op) { return op->waits_for_caller(); });
  return found == in_flight_.end() ? 0 : (*found)->number();
}

std::uint64_t Engine::next_number() {
  const std::lock_guard lock(mutex_);
  return next_op_;
}

Status Engine::status() {
  const std::lock_guard lock(mutex_);
  check_world_locked();
  return end_;
}

std::uint64_t Engine::completed() {
  const std::lock_guard lock(mutex_);
  return group_.words.completed(group_.local);
}

std::vector<OpRecord> Engine::records() {
  const std::lock_guard lock(mutex_);
  std::vector<OpRecord> newest_first;
  for (std::uint64_t i = recorded_; i > 0 && newest_first.size() < kRecords; --i) {
    newest_first.push_back(records_[(i - 1) % kRecords]);
  }
  return newest_first;
}

void Engine::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    end_locked(std::move(closed_));
    progress_wanted_.notify_all();
  }
  nudge();
  if (progress_.joinable()) progress_.join();
}

}  // namespace railhead::client
