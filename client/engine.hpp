// The operations in flight of one group: admission, order, completion, and who steps them.
//
// Whoever waits steps: a blocking call, an event wait, or the group's progress thread, which sleeps unless asynchronous
// operations are in flight and nobody else is waiting. Every step happens under one lock; sleeping never does.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "client/group_context.hpp"
#include "client/op.hpp"
#include "ipc/wait.hpp"

namespace railhead::client {

struct OpRecord {
  std::uint64_t op = 0;
  ipc::OpKind kind = ipc::OpKind::none;
  OpTimes times;
  std::uint64_t rows = 0;
  std::uint64_t rail_bytes = 0;
};

// What the engine needs from the session.
struct EngineHooks {
  std::function<bool()> daemon_alive;
  std::function<void(const Status&)> abort_group;  // tells the daemon; the poison comes back through shared memory
};

// Who carries an operation on while no call waits for it.
enum class Carried : std::uint8_t {
  by_waiters,          // nobody
  by_progress_thread,  // it, once the caller says detach()
};

class Engine {
 public:
  Engine(GroupContext& group, EngineHooks hooks);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Prepares, numbers and starts an operation; waits for room first when `depth` are in flight. An error, or an
  // exception: it did not happen (or the group has ended). Once it flies, lack of memory ends the group.
  Status start(const std::shared_ptr<Op>& op, Carried carried);
  // Until done(), which is asked under the lock: false from the deadline on. The group's end counts as done.
  bool wait(ipc::Deadline deadline, const std::function<bool()>& done);
  // One step on behalf of a poller.
  void poll();
  // The caller changed what an operation waits for: whoever waits looks again.
  void nudge();
  // From now on the progress thread may carry on what is in flight. An error: there is none and none can be started,
  // and the group has ended with that.
  Status detach();

  // What the next operation will be called.
  [[nodiscard]] std::uint64_t next_number();
  [[nodiscard]] std::uint64_t next_number_locked() const { return next_op_; }
  // The reason the group ended, or ok.
  [[nodiscard]] Status status();
  [[nodiscard]] std::uint64_t completed();
  [[nodiscard]] std::vector<OpRecord> records();
  // The reason the group ended, or ok after f(number of the oldest operation in flight that nothing but another call of
  // the application can move; 0: none) under the group lock.
  template <class F>
  Status unless_ended(F&& f) {
    const std::lock_guard lock(mutex_);
    check_world_locked();
    if (end_.ok()) f(waits_for_caller_locked());
    return end_;
  }
  // The operations in flight, oldest first. Inside of locked() or unless_ended().
  [[nodiscard]] std::span<const std::shared_ptr<Op>> in_flight_locked() const { return in_flight_; }
  // Runs f under the group lock.
  template <class F>
  auto locked(F&& f) {
    const std::lock_guard lock(mutex_);
    return f();
  }
  // Stops stepping for good: the group is being closed. Whoever still waits is told so.
  void stop();

 private:
  static constexpr std::size_t kRecords = 64;

  Status start_progress_locked();  // unless it runs
  bool step_locked();              // true when anything moved
  bool step_all_locked();
  // Runs f; lack of memory there ends the group.
  template <class F>
  void or_end_locked(F&& f);
  void fail_locked(Status reason);  // this rank cannot go on: ends the group, here and everywhere
  bool has_room_locked() const;
  [[nodiscard]] std::uint64_t waits_for_caller_locked() const;
  void leave_locked();  // a waiter goes
  void end_locked(Status reason);
  void check_world_locked();
  void look_at_world_locked();
  bool complete_front_locked();
  void note_waiting_locked();  // not while a waiter still spins: nobody asks about microseconds
  void progress_loop();
  Status poison_status() const;
  Status late(const Op& op) const;

  GroupContext& group_;
  EngineHooks hooks_;
  ipc::WaitPolicy policy_;
  Status no_memory_;  // made while there was some, as the next
  Status closed_;

  std::mutex mutex_;
  std::vector<std::shared_ptr<Op>> in_flight_;  // room for all is made at the start; oldest first
  std::uint64_t next_op_ = 1;
  Status end_;           // ok while the group works
  bool ending_ = false;  // we asked the daemon to end the group; its poison is on the way
  std::uint64_t rail_bytes_before_ = 0;
  std::array<OpRecord, kRecords> records_{};  // of the last ones, in turn
  std::uint64_t recorded_ = 0;

  std::condition_variable progress_wanted_;
  std::uint32_t waiters_ = 0;
  bool detached_ = false;  // asynchronous operations may be in flight
  bool stopping_ = false;
  std::thread progress_;
};

}  // namespace railhead::client
