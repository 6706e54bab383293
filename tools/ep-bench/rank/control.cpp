#include "tools/ep-bench/rank/control.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <thread>

namespace railhead::bench {
namespace {

constexpr std::uint32_t kBarrierEvent = 1;
constexpr std::size_t kHead = 4096;

std::size_t bytes_for(std::uint32_t ranks) {
  const std::size_t page = ipc::page_bytes();
  const std::size_t bytes = kHead + std::size_t{ranks} * kRoundsPerCommand * sizeof(RoundSample);
  return (bytes + page - 1) / page * page;
}

}  // namespace

struct Control::Words {
  alignas(64) ipc::WakeWord wake;
  alignas(64) std::uint32_t arrived;
  alignas(64) std::uint32_t passed;  // barriers passed
  alignas(64) std::uint32_t progress;
  alignas(64) rh_unique_id id;
};

void Answer::say(std::string_view sentence) {
  const std::size_t length = std::min(sentence.size(), sizeof(text) - 1);
  std::memcpy(text, sentence.data(), length);
  text[length] = 0;
}

Control::Words& Control::words() const {
  static_assert(sizeof(Words) <= kHead);
  return *std::launder(reinterpret_cast<Words*>(memory_.data()));
}

Result<Control> Control::make(std::uint32_t ranks) {
  auto memory = ipc::Segment::create("ep-bench", bytes_for(ranks));
  if (!memory) return fail(memory.error());
  return Control(std::move(*memory), ranks);
}

Result<Control> Control::join(std::uint32_t ranks) {
  auto memory =
      ipc::Segment::map(ipc::UniqueFd(kControlFd), bytes_for(ranks), ipc::Access::read_write, ipc::Prefault::yes);
  if (!memory) return fail(memory.error());
  return Control(std::move(*memory), ranks);
}

Status Control::barrier(ipc::Deadline deadline) {
  Words& w = words();
  // acquire: `passed` was stored before the arrivals of this barrier began; see the store below.
  const std::uint32_t before = ipc::load_acquire(w.passed);
  // acq_rel: what every rank wrote before its arrival is visible to the last one, and through `passed` to all.
  if (ipc::shared(w.arrived).fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
    // relaxed: nobody arrives again before it saw the release store of `passed`.
    ipc::store_relaxed(w.arrived, 0U);
    ipc::store_release(w.passed, before + 1);
    ipc::notify(w.wake, kBarrierEvent);
    return {};
  }
  // Awake, as MPI's barrier is: a round must not begin with the time that waking the ranks takes.
  constexpr ipc::WaitPolicy policy{0, 1U << 20, ipc::kMaxTick};
  for (;;) {
    const auto result =
        ipc::wait_until(w.wake, kBarrierEvent, deadline, policy, [&] { return ipc::load_acquire(w.passed) != before; });
    if (result == ipc::WaitResult::ready) return {};
    if (result == ipc::WaitResult::poisoned) return {Code::aborted, "another rank failed"};
    if (result == ipc::WaitResult::timeout) {
      return {Code::timeout, "the other ranks did not come to the barrier (see --timeout)"};
    }
  }
}

void Control::give_up() {
  ipc::poison(words().wake);
}

rh_unique_id& Control::id() {
  return words().id;
}

RoundSample& Control::sample(std::uint32_t rank, std::uint32_t round) {
  auto* const samples = reinterpret_cast<RoundSample*>(memory_.data() + kHead);
  return samples[std::size_t{rank} * kRoundsPerCommand + round];
}

void Control::set_progress(std::uint32_t rounds) {
  ipc::store_release(words().progress, rounds);
}

void Control::add_progress() {
  // release: as a store; the launcher only reads the count.
  ipc::shared(words().progress).fetch_add(1, std::memory_order_release);
}

std::uint32_t Control::progress() const {
  return ipc::load_acquire(words().progress);
}

}  // namespace railhead::bench
