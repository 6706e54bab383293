// Prints how many million descriptors per second go through one ring between two processes on two cores.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "ipc/deadline.hpp"
#include "ipc/ring.hpp"
#include "ipc/segment.hpp"

namespace {

using namespace railhead;
using namespace railhead::ipc;

constexpr std::uint64_t kCount = 2'000'000;
constexpr std::uint32_t kGeneration = 1;

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  static_cast<void>(::sched_setaffinity(0, sizeof(set), &set));
}

int produce(const Segment& memory, std::uint32_t capacity) {
  auto producer = *RingProducer::attach(memory.span(), capacity, kGeneration);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    while (!producer.try_push({i, i})) {
      if (producer.corrupt()) return 1;
    }
  }
  return 0;
}

// Million descriptors per second; 0 when one of them was wrong.
double measure(std::uint32_t capacity, std::size_t batch) {
  const auto memory = Segment::create("ring_rate", ring_bytes(capacity));
  if (!memory) return 0;
  pin(1);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(produce(*memory, capacity));
  pin(0);
  auto consumer = *RingConsumer::attach(memory->span(), capacity, kGeneration);
  std::array<Descriptor, 64> out;
  bool right = true;
  // The first lap starts the clock: the start of the process is not part of the rate.
  while (consumer.popped() < capacity) consumer.pop_batch(std::span(out).first(batch));
  const std::uint64_t before = consumer.popped();
  const auto start = Deadline::Clock::now();
  while (consumer.popped() < kCount) {
    const std::uint64_t first = consumer.popped();
    const std::size_t taken = consumer.pop_batch(std::span(out).first(batch));
    for (std::size_t i = 0; i < taken; ++i) right = right && out[i].a == first + i && out[i].b == first + i;
  }
  const std::chrono::duration<double, std::micro> took = Deadline::Clock::now() - start;
  int status = 0;
  ::waitpid(child, &status, 0);
  return right && status == 0 ? static_cast<double>(kCount - before) / took.count() : 0;
}

}  // namespace

int main() {
  for (const std::uint32_t capacity : {64U, 256U}) {
    for (const std::size_t batch : {std::size_t{1}, std::size_t{32}}) {
      std::vector<double> rates;
      for (int i = 0; i < 5; ++i) rates.push_back(measure(capacity, batch));
      std::sort(rates.begin(), rates.end());
      std::printf("capacity %4u batch %2zu: %6.1f million descriptors/s (median of 5, worst %.1f)\n", capacity, batch,
                  rates[2], rates[0]);
    }
  }
}
