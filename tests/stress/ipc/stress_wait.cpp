// Wake words between two processes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "ipc/segment.hpp"
#include "ipc/wait.hpp"
#include "unit/ipc/child.hpp"

namespace railhead::ipc {
namespace {

using namespace std::chrono_literals;
using test::Child;

struct Table {
  WakeWord words[2];
  alignas(64) std::uint64_t counts[2];
};

// A lost wake shows as a wait that only its tick ended. So does a process that wants a core and gets none: as many are
// granted as the kernel says that the two have waited for one, and a few to a machine that stalls.
constexpr auto kLate = kMaxTick - 5ms;
constexpr int kLateGranted = 5;

// The time since its start that a process of one thread could have run and did not.
std::chrono::nanoseconds waited_for_a_core(pid_t pid) {
  std::uint64_t ran = 0;
  std::uint64_t waited = 0;
  std::ifstream("/proc/" + std::to_string(pid) + "/schedstat") >> ran >> waited;
  return std::chrono::nanoseconds(waited);
}

// Which waits were late, beyond those that are granted.
class LateWaits {
 public:
  explicit LateWaits(pid_t other) : other_(other), waited_before_(waited()) {}

  void note(Deadline::Clock::duration took) {
    if (took >= kLate && ++late_ > granted_)
      granted_ = kLateGranted + static_cast<int>((waited() - waited_before_) / kLate);
  }
  [[nodiscard]] bool too_many() const { return late_ > granted_; }
  [[nodiscard]] int count() const { return late_; }

 private:
  [[nodiscard]] std::chrono::nanoseconds waited() const {
    return waited_for_a_core(::getpid()) + waited_for_a_core(other_);
  }

  pid_t other_;
  std::chrono::nanoseconds waited_before_;
  int late_ = 0;
  int granted_ = kLateGranted;
};

enum class Played { well, too_many_late, timeout };

// Says round after round and waits for the other's answer.
Played play(Table& table, int me, std::uint64_t rounds, const WaitPolicy& policy, LateWaits& late) {
  const int other = 1 - me;
  for (std::uint64_t round = 1; round <= rounds && !late.too_many(); ++round) {
    if (me == 0) {
      store_release(table.counts[0], round);
      notify(table.words[1], 1);
    }
    const auto start = Deadline::Clock::now();
    const auto answered = [&] { return load_acquire(table.counts[other]) >= round; };
    WaitResult result;
    do {
      result = wait_until(table.words[me], 1, Deadline(start + 20s), policy, answered);
    } while (result == WaitResult::tick);
    if (result != WaitResult::ready) return Played::timeout;
    late.note(Deadline::Clock::now() - start);
    if (me == 1) {
      store_release(table.counts[1], round);
      notify(table.words[0], 1);
    }
  }
  return late.too_many() ? Played::too_many_late : Played::well;
}

class WaitStress : public ::testing::TestWithParam<WaitPolicy> {};

TEST_P(WaitStress, PingPongLosesNoWake) {
  // Spinning on a core that somebody else needs takes a time slice per round.
  const std::uint64_t rounds = GetParam().spins > 0 ? 5'000 : 100'000;
  auto memory = Segment::create("wait", sizeof(Table));
  ASSERT_TRUE(memory);
  auto& table = *reinterpret_cast<Table*>(memory->data());
  const pid_t parent = ::getpid();
  Child other([&] {
    LateWaits late(parent);
    return static_cast<int>(play(table, 1, rounds, GetParam(), late));
  });
  LateWaits late(other.pid());
  const auto start = Deadline::Clock::now();
  const Played played = play(table, 0, rounds, GetParam(), late);
  const std::chrono::duration<double, std::micro> took = Deadline::Clock::now() - start;
  ASSERT_NE(played, Played::timeout);
  ASSERT_NE(played, Played::too_many_late) << late.count() << " waits";
  EXPECT_EQ(other.wait(), static_cast<int>(Played::well));
  std::printf("round trip %.2f us, late %d\n", took.count() / static_cast<double>(rounds), late.count());
}

INSTANTIATE_TEST_SUITE_P(Policies, WaitStress,
                         ::testing::Values(WaitPolicy{0, 0, kMaxTick}, WaitPolicy::for_load(3, 2),
                                           WaitPolicy::for_load(2, 2)),
                         [](const auto& param) {
                           return "Spins" + std::to_string(param.param.spins) + "Yields" +
                                  std::to_string(param.param.yields);
                         });

// A process killed while it sleeps, or between its announcement and its sleep, takes nobody else's wakes with it.
TEST(WaitStressKill, KilledSleeperDoesNotDisturbOthers) {
  constexpr WaitPolicy kSleepAtOnce{0, 0, kMaxTick};
  auto memory = Segment::create("wait", sizeof(Table));
  ASSERT_TRUE(memory);
  auto& table = *reinterpret_cast<Table*>(memory->data());
  const auto ticks_now = [] { return static_cast<std::uint64_t>(Deadline::Clock::now().time_since_epoch().count()); };
  int late = 0;
  for (std::uint64_t round = 1; round <= 50; ++round) {
    Child survivor([&] {
      const auto reached = [&] { return load_acquire(table.counts[0]) >= round; };
      const Deadline deadline = Deadline::after(20s);
      WaitResult result;
      do {
        result = wait_until(table.words[0], 1, deadline, kSleepAtOnce, reached);
      } while (result == WaitResult::tick);
      if (result != WaitResult::ready) return 2;
      return Deadline::Clock::duration(ticks_now() - load_relaxed(table.counts[1])) >= kLate / 2 ? 1 : 0;
    });
    {
      const Child victim([&] {
        return static_cast<int>(
            wait_until(table.words[0], 1, Deadline::after(20s), kSleepAtOnce, [] { return false; }));
      });
    }
    store_relaxed(table.counts[1], ticks_now());
    store_release(table.counts[0], round);
    notify(table.words[0], 1);
    const int status = survivor.wait();
    ASSERT_LE(status, 1) << "timeout";
    late += status;
  }
  EXPECT_LE(late, kLateGranted);
}

}  // namespace
}  // namespace railhead::ipc
