#include "ipc/liveness_watcher.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "ipc/futex.hpp"

namespace railhead::ipc {
namespace {

constexpr std::chrono::milliseconds kPollTick{50};
// With futex_waitv the kernel wakes us; this is for an owner that cleared its own FUTEX_WAITERS bit.
constexpr std::chrono::milliseconds kWaitvTick{1000};

// A thread inherits the signal mask: application and daemon handlers must not run on ours.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Result<std::unique_ptr<LivenessWatcher>> LivenessWatcher::start(LifeEnded on_end, Method method) {
  const bool waitv = method == Method::best && has_futex_waitv();
  std::unique_ptr<LivenessWatcher> watcher(new LivenessWatcher(std::move(on_end), waitv));
  const SignalsBlocked blocked;
  try {
    watcher->thread_ = std::thread([raw = watcher.get()] { raw->run(); });
  } catch (const std::system_error& error) {
    return fail(system_status("liveness watcher: start thread", error.code().value()));
  }
  pthread_setname_np(watcher->thread_.native_handle(), "rh-liveness");
  return watcher;
}

LivenessWatcher::~LivenessWatcher() {
  if (!thread_.joinable()) return;
  // relaxed: nudge() publishes it.
  stop_.store(true, std::memory_order_relaxed);
  nudge();
  thread_.join();
}

bool LivenessWatcher::add(std::uint64_t id, const LivenessCell& cell) {
  {
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= kCapacity) return false;
    entries_.push_back({id, &cell, 0});
  }
  nudge();
  return true;
}

bool LivenessWatcher::remove(std::uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    if (std::erase_if(entries_, [id](const Entry& entry) { return entry.id == id; }) == 0) return false;
  }
  nudge();
  return true;
}

std::size_t LivenessWatcher::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void LivenessWatcher::nudge() noexcept {
  // release: pairs with the load in run().
  shared(control_).fetch_add(1, std::memory_order_release);
  futex_wake(control_, 1);
}

void LivenessWatcher::run() {
  for (;;) {
    // acquire, and before the look at the words: a change after it makes sleep() return at once.
    const std::uint32_t control = load_acquire(control_);
    // relaxed: the acquire above orders it.
    if (stop_.load(std::memory_order_relaxed)) return;
    const std::vector<Ended> ended = take_ended();
    for (const Ended& one : ended) on_end_(one.id, one.how);
    if (ended.empty()) sleep(control);
  }
}

// A living owner's word never changes. So any other value ends the watch: a word that flickers costs one report.
std::vector<LivenessWatcher::Ended> LivenessWatcher::take_ended() {
  std::vector<Ended> ended;
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](Entry& entry) {
    const std::uint32_t value = load_acquire(entry.cell->word);
    Life life = classify_life(value);
    if (life == Life::alive) {
      if (entry.value == 0) entry.value = value;
      if (entry.value == value) return false;
      life = Life::tampered;
    }
    ended.push_back({entry.id, life});
    return true;
  });
  return ended;
}

void LivenessWatcher::sleep(std::uint32_t control) {
  if (!waitv_) {
    futex_wait(control_, control, Deadline::after(kPollTick));
    return;
  }
  std::vector<FutexWaiter> waiters;
  waiters.push_back({&control_, control});
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      // Added since the look: its nudge changed control_, so the call below returns at once.
      if (entry.value != 0) waiters.push_back({&entry.cell->word, entry.value});
    }
  }
  // A word removed and unmapped since can make the call fail with a bad address; whatever fails must not become a spin.
  const FutexResult result = futex_waitv(waiters, Deadline::after(kWaitvTick));
  if (result == FutexResult::failed || result == FutexResult::unsupported) {
    futex_wait(control_, control, Deadline::after(kPollTick));
  }
}

Result<void> LivenessPool::add(std::uint64_t id, const LivenessCell& cell) {
  const std::lock_guard lock(mutex_);
  for (const auto& watcher : watchers_) {
    if (watcher->add(id, cell)) return {};
  }
  auto watcher = LivenessWatcher::start(on_end_, method_);
  if (!watcher) return fail(watcher.error());
  watchers_.push_back(std::move(*watcher));
  watchers_.back()->add(id, cell);
  return {};
}

bool LivenessPool::remove(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  return std::any_of(watchers_.begin(), watchers_.end(), [id](const auto& watcher) { return watcher->remove(id); });
}

std::size_t LivenessPool::threads() const {
  const std::lock_guard lock(mutex_);
  return watchers_.size();
}

}  // namespace railhead::ipc
