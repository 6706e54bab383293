// The ring between two processes, also with a producer that is killed in the middle.
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <random>

#include "ipc/pidfd.hpp"
#include "ipc/ring.hpp"
#include "ipc/segment.hpp"
#include "unit/ipc/child.hpp"

namespace railhead::ipc {
namespace {

using namespace std::chrono_literals;
using test::Child;

// A descriptor that checks itself and says which one it is.
Descriptor numbered(std::uint64_t i) {
  return {i, (i * 0x9E3779B97F4A7C15ULL >> 16) & kDescriptorMask};
}

Segment make_ring(std::uint32_t capacity) {
  auto segment = Segment::create("ring", ring_bytes(capacity));
  EXPECT_TRUE(segment) << segment.error().to_string();
  return std::move(segment).value_or(Segment());
}

int produce(const Segment& memory, std::uint32_t capacity, std::uint32_t generation, std::uint64_t count) {
  auto producer = RingProducer::attach(memory.span(), capacity, generation);
  if (!producer) return 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    while (!producer->try_push(numbered(i))) {
      if (producer->corrupt()) return 2;
      ::sched_yield();
    }
  }
  return 0;
}

TEST(RingStress, MillionDescriptorsBetweenProcesses) {
  constexpr std::uint64_t kCount = 1'000'000;
  constexpr std::uint32_t kCapacity = 256;
  const Segment memory = make_ring(kCapacity);
  Child producer([&] { return produce(memory, kCapacity, 3, kCount); });
  auto consumer = RingConsumer::attach(memory.span(), kCapacity, 3);
  ASSERT_TRUE(consumer);
  std::array<Descriptor, 32> batch;
  const Deadline deadline = Deadline::after(60s);
  while (consumer->popped() < kCount) {
    const std::uint64_t first = consumer->popped();
    const std::size_t taken = consumer->pop_batch(batch);
    for (std::size_t i = 0; i < taken; ++i) ASSERT_EQ(batch[i], numbered(first + i));
    if (taken > 0) continue;
    ::sched_yield();
    ASSERT_FALSE(deadline.expired()) << "at " << consumer->popped();
  }
  EXPECT_EQ(producer.wait(), 0);
  EXPECT_FALSE(consumer->try_pop());
}

// The producer dies at a random instant: what is there is a prefix of what it pushed, never garbage. The same memory
// serves the next generation without being cleared.
TEST(RingStress, KilledProducerLeavesAPrefix) {
  constexpr std::uint32_t kCapacity = 16;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Segment memory = make_ring(kCapacity);
  for (std::uint32_t round = 0; round < 50; ++round) {
    store_release(reinterpret_cast<RingHeader*>(memory.data())->tail, std::uint64_t{0});
    Child producer([&] { return produce(memory, kCapacity, round, ~0ULL); });
    auto consumer = RingConsumer::attach(memory.span(), kCapacity, round);
    ASSERT_TRUE(consumer);
    const std::uint64_t fatal = 1 + random() % 5000;
    bool killed = false;
    const auto take_all = [&] {
      while (const auto popped = consumer->try_pop()) {
        ASSERT_EQ(*popped, numbered(consumer->popped() - 1));
        if (killed || consumer->popped() < fatal) continue;
        producer.kill_now();
        killed = true;
      }
    };
    const Deadline deadline = Deadline::after(30s);
    while (!killed && !deadline.expired()) {
      take_all();
      ::sched_yield();
    }
    ASSERT_TRUE(killed);
    producer.wait();
    take_all();
    ASSERT_GE(consumer->popped(), fatal);
  }
}

}  // namespace
}  // namespace railhead::ipc
