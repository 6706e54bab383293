// The watching side of liveness words: threads that sleep until one of their words ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ipc/liveness.hpp"
#include "ipc/status.hpp"

namespace railhead::ipc {

// Called once per watched word, on a watcher thread, with no lock held: `how` is released, died or tampered.
using LifeEnded = std::function<void(std::uint64_t id, Life how)>;

// One thread for up to kCapacity words, by futex_waitv (measured: kill to callback well below a millisecond on an idle
// machine). Where the kernel has no futex_waitv (before 5.16, or filtered), the thread looks at its words every 50 ms
// instead: one thread per word would be the alternative, and is not worth its weight.
class LivenessWatcher {
 public:
  // One of the kernel's 128 is the control word.
  static constexpr std::size_t kCapacity = 127;
  enum class Method : std::uint8_t { best, poll };  // poll: as if the kernel had no futex_waitv

  static Result<std::unique_ptr<LivenessWatcher>> start(LifeEnded on_end, Method method = Method::best);
  // Stops and joins. Not from a callback.
  ~LivenessWatcher();
  LivenessWatcher(const LivenessWatcher&) = delete;
  LivenessWatcher& operator=(const LivenessWatcher&) = delete;

  // From any thread, callbacks included. False when full. The word is looked at at once: one that has no owner (any
  // more) is reported like one that ends later. It must stay mapped until remove() returned or the callback was called.
  bool add(std::uint64_t id, const LivenessCell& cell);
  // From any thread, callbacks included. After it the word is not looked at; a callback that had begun may still run.
  // False when there is no such id (any more).
  bool remove(std::uint64_t id);

  [[nodiscard]] std::size_t size() const;

 private:
  struct Entry {
    std::uint64_t id;
    const LivenessCell* cell;
    std::uint32_t value;  // what it held when first seen alive; 0 = not yet looked at
  };
  struct Ended {
    std::uint64_t id;
    Life how;
  };

  LivenessWatcher(LifeEnded on_end, bool waitv) : on_end_(std::move(on_end)), waitv_(waitv) {}
  void run();
  void nudge() noexcept;
  std::vector<Ended> take_ended();
  void sleep(std::uint32_t control);

  const LifeEnded on_end_;
  const bool waitv_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // guarded by mutex_
  std::uint32_t control_ = 0;   // futex word: changes when entries_ or stop_ did
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Any number of words: one watcher thread per LivenessWatcher::kCapacity of them, started when needed, kept.
class LivenessPool {
 public:
  explicit LivenessPool(LifeEnded on_end, LivenessWatcher::Method method = LivenessWatcher::Method::best)
      : on_end_(std::move(on_end)), method_(method) {}

  // As LivenessWatcher's; Code::system when a thread cannot be started.
  Result<void> add(std::uint64_t id, const LivenessCell& cell);
  bool remove(std::uint64_t id);
  [[nodiscard]] std::size_t threads() const;

 private:
  const LifeEnded on_end_;
  const LivenessWatcher::Method method_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<LivenessWatcher>> watchers_;  // guarded by mutex_
};

}  // namespace railhead::ipc
