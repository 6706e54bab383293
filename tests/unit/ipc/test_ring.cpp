#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "ipc/ring.hpp"

namespace railhead::ipc {
namespace {

// A ring in private memory with both of its sides.
struct Ring {
  explicit Ring(std::uint32_t slots, std::uint32_t generation = 1) : capacity(slots), memory(ring_bytes(slots) / 64) {
    attach(generation);
  }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::span<std::byte> span() { return std::as_writable_bytes(std::span(memory)); }
  RingHeader& header() { return *reinterpret_cast<RingHeader*>(memory.data()); }
  RingSlot& slot(std::size_t i) { return reinterpret_cast<RingSlot*>(memory.data() + 1)[i]; }
  void attach(std::uint32_t generation) {
    producer.emplace(*RingProducer::attach(span(), capacity, generation));
    consumer.emplace(*RingConsumer::attach(span(), capacity, generation));
  }

  std::uint32_t capacity;
  std::vector<Line> memory;
  std::optional<RingProducer> producer;
  std::optional<RingConsumer> consumer;
};

TEST(Ring, EmptyMemoryHoldsNothingInAnyGeneration) {
  for (std::uint32_t generation = 0; generation < kRingGenerations; ++generation) {
    Ring ring(4, generation);
    EXPECT_FALSE(ring.consumer->try_pop());
    EXPECT_FALSE(ring.consumer->ready());
  }
}

// Zeroed memory must not look like a descriptor at any position, nor the lap before like this one.
TEST(RingCursor, TagIsNeverZeroAndDiffersFromTheLapBefore) {
  RingCursor cursor(1, 0);
  for (int lap = 0; lap < 5000; ++lap) {
    const std::uint64_t before = cursor.tag();
    ASSERT_NE(before, 0U) << lap;
    cursor.advance();
    ASSERT_NE(cursor.tag(), before) << lap;
  }
}

TEST(Ring, KeepsOrderOverManyLaps) {
  for (const std::uint32_t capacity : {1U, 2U, 8U}) {
    Ring ring(capacity);
    // More than 1023 laps, so that the lap wraps.
    for (std::uint64_t i = 0; i < 1100ULL * capacity; ++i) {
      ASSERT_TRUE(ring.producer->try_push({i, ~i}));
      const auto popped = ring.consumer->try_pop();
      ASSERT_TRUE(popped) << i;
      ASSERT_EQ(*popped, (Descriptor{i, ~i & kDescriptorMask}));
      ASSERT_FALSE(ring.consumer->try_pop());
    }
  }
}

TEST(Ring, FullRefusesUntilOneIsTaken) {
  Ring ring(4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(ring.producer->try_push({i, i}));
  EXPECT_FALSE(ring.producer->try_push({9, 9}));
  EXPECT_EQ(ring.consumer->try_pop(), (Descriptor{0, 0}));
  EXPECT_TRUE(ring.producer->try_push({4, 4}));
  EXPECT_FALSE(ring.producer->try_push({9, 9}));
  EXPECT_FALSE(ring.producer->corrupt());
}

TEST(Ring, BatchTakesWhatIsThere) {
  Ring ring(8);
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(ring.producer->try_push({i, i}));
  std::array<Descriptor, 4> batch;
  EXPECT_EQ(ring.consumer->pop_batch(batch), 4U);
  EXPECT_EQ(batch[3], (Descriptor{3, 3}));
  EXPECT_EQ(ring.consumer->pop_batch(batch), 2U);
  EXPECT_EQ(batch[1], (Descriptor{5, 5}));
  EXPECT_EQ(ring.consumer->pop_batch(batch), 0U);
}

TEST(Ring, BothSidesCountWhatIsPending) {
  Ring ring(4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(ring.producer->try_push({i, i}));
  EXPECT_EQ(ring.producer->pending(), 4U);
  EXPECT_EQ(ring.consumer->pending(), 4U);
  ASSERT_TRUE(ring.consumer->try_pop());
  EXPECT_EQ(ring.producer->pending(), 3U);
  EXPECT_EQ(ring.consumer->pending(), 3U);
  EXPECT_EQ(ring.producer->pushed(), 4U);
  EXPECT_EQ(ring.consumer->popped(), 1U);
}

TEST(Ring, HighBitsOfADescriptorDoNotReachTheTag) {
  Ring ring(2);
  ASSERT_TRUE(ring.producer->try_push({~0ULL, ~0ULL}));
  EXPECT_EQ(ring.consumer->try_pop(), (Descriptor{kDescriptorMask, kDescriptorMask}));
}

// Whichever word is missing, a torn pair is not there yet.
TEST(Ring, TornPairIsNotThere) {
  for (const int missing : {0, 1}) {
    Ring ring(2);
    ASSERT_TRUE(ring.producer->try_push({7, 8}));
    const std::uint64_t late = std::exchange(ring.slot(0).words[missing], 0);
    EXPECT_FALSE(ring.consumer->try_pop());
    ring.slot(0).words[missing] = late;
    EXPECT_EQ(ring.consumer->try_pop(), (Descriptor{7, 8}));
  }
}

TEST(Ring, TornPairOverAnOlderLapIsNotThere) {
  for (const int missing : {0, 1}) {
    Ring ring(1);
    ASSERT_TRUE(ring.producer->try_push({1, 1}));
    ASSERT_TRUE(ring.consumer->try_pop());
    const std::uint64_t older = ring.slot(0).words[missing];
    ASSERT_TRUE(ring.producer->try_push({2, 2}));
    ring.slot(0).words[missing] = older;
    EXPECT_FALSE(ring.consumer->try_pop());
  }
}

TEST(Ring, LeftoversOfAnotherGenerationAreNotTaken) {
  Ring ring(4, 5);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(ring.producer->try_push({i, i}));
  ring.attach(6);
  EXPECT_FALSE(ring.consumer->try_pop());
  ASSERT_TRUE(ring.producer->try_push({9, 9}));
  EXPECT_EQ(ring.consumer->try_pop(), (Descriptor{9, 9}));
  EXPECT_FALSE(ring.consumer->try_pop());
}

TEST(Ring, ClearEmptiesForTheSameGeneration) {
  Ring ring(4, 5);
  ASSERT_TRUE(ring.producer->try_push({1, 1}));
  ring_clear(ring.span());
  ring.attach(5);
  EXPECT_FALSE(ring.consumer->try_pop());
  EXPECT_EQ(ring.producer->pending(), 0U);
}

TEST(Ring, LyingTailNeverOverrunsTheRing) {
  for (const std::uint64_t lie : {5ULL, 1000ULL, ~0ULL}) {
    Ring ring(4);
    for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(ring.producer->try_push({i, i}));
    ring.header().tail = lie;
    EXPECT_FALSE(ring.producer->try_push({9, 9}));
    EXPECT_TRUE(ring.producer->corrupt());
    EXPECT_EQ(ring.consumer->try_pop(), (Descriptor{0, 0}));
  }
}

TEST(Ring, TailThatRunsBackwardsIsCorrupt) {
  Ring ring(2);
  ASSERT_TRUE(ring.producer->try_push({0, 0}));
  ASSERT_TRUE(ring.consumer->try_pop());
  EXPECT_EQ(ring.producer->pending(), 0U);
  ring.header().tail = 0;
  EXPECT_EQ(ring.producer->pending(), 0U);
  EXPECT_TRUE(ring.producer->corrupt());
}

// The consumer's own count decides, not the word it publishes.
TEST(Ring, OverwrittenTailDoesNotMoveTheConsumer) {
  Ring ring(4);
  ASSERT_TRUE(ring.producer->try_push({1, 1}));
  ASSERT_TRUE(ring.producer->try_push({2, 2}));
  ASSERT_TRUE(ring.consumer->try_pop());
  ring.header().tail = 77;
  EXPECT_EQ(ring.consumer->try_pop(), (Descriptor{2, 2}));
  EXPECT_EQ(ring.header().tail, 2U);
}

TEST(Ring, AttachChecksItsArguments) {
  Ring ring(4);
  const auto code = [](const auto& result) { return result ? Code::ok : result.error().code(); };
  EXPECT_EQ(code(RingProducer::attach(ring.span(), 3, 0)), Code::invalid_argument);
  EXPECT_EQ(code(RingProducer::attach(ring.span(), 0, 0)), Code::invalid_argument);
  EXPECT_EQ(code(RingConsumer::attach(ring.span(), 8, 0)), Code::invalid_argument);
  EXPECT_EQ(code(RingConsumer::attach(ring.span(), 4, kRingGenerations)), Code::invalid_argument);
  EXPECT_EQ(code(RingConsumer::attach(ring.span().subspan(8), 1, 0)), Code::invalid_argument);
  EXPECT_EQ(code(RingConsumer::attach(ring.span(), kMaxRingCapacity * 2, 0)), Code::invalid_argument);
}

// Data behind a descriptor is visible with it, and is not overwritten before it was taken (ThreadSanitizer looks on).
TEST(Ring, PublishesDataBetweenThreads) {
  constexpr std::uint64_t kCount = 20000;
  Ring ring(8);
  std::array<std::uint64_t, 8> slots{};
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      while (ring.producer->pending() == 8) std::this_thread::yield();
      slots[i % 8] = i * 3;
      ASSERT_TRUE(ring.producer->try_push({i, 0}));
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    while (!ring.consumer->ready()) std::this_thread::yield();
    if (slots[i % 8] != i * 3) ++wrong;
    const auto popped = ring.consumer->try_pop();
    if (!popped || popped->a != i) ++wrong;
  }
  writer.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace railhead::ipc
