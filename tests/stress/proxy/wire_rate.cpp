// Prints the rate at which one proxy moves filled slots to another over tcp on this host: the figure `wire`, whose
// other side is tools/peers/fabric_loop. Not a test.
//
// usage: wire_rate [chunk bytes = 73728] [chunks = 20000] [spin us = 50] [slots = 8] [repetitions = 5]
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "ipc/wait.hpp"
#include "tests/unit/proxy/fabric_cases.hpp"

namespace railhead::daemon {
namespace {

// One direction, from rank 0 to rank 1, over the four rings between them.
class Flow {
 public:
  Flow(TestGroup& group, std::uint32_t slots, std::uint32_t bytes)
      : group_(group), slots_(slots), bytes_(bytes), sent_(rings(), 0), received_(rings(), 0) {}

  double gigabytes_per_second(std::uint64_t chunks) {
    const std::uint64_t target = sent_[0] + chunks / rings();
    const auto began = std::chrono::steady_clock::now();
    std::thread receiver([&] { receive(target); });
    send(target);
    receiver.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const std::size_t sent = chunks / rings() * rings();
    return static_cast<double>(sent * bytes_) / took.count() / 1e9;
  }

 private:
  std::uint32_t rings() const { return group_.ranks[0]->rings.tx_count(); }

  template <class Pass>
  void run(std::uint16_t rank, Pass pass) {
    auto& word = group_.segment(rank).live(0).wake;
    const ipc::WaitPolicy asleep{0, 0, ipc::kMaxTick};
    bool over = false;
    while (!over) {
      const auto result = ipc::wait_until(word, ipc::kWakeRail, soon(), asleep, [&] { return pass(over); });
      if (result == ipc::WaitResult::timeout || result == ipc::WaitResult::poisoned) std::exit(1);
      group_.daemon_of(rank).ring_if_needed();
    }
  }

  void send(std::uint64_t target) {
    ipc::RailWordsClient& client = group_.rank(0).client;
    run(0, [&](bool& over) {
      bool any = false;
      over = true;
      for (std::uint32_t tx = 0; tx < rings(); ++tx) {
        const std::uint64_t until = std::min(target, client.granted(tx) + slots_);
        for (; sent_[tx] < until; ++sent_[tx], any = true) {
          static_cast<void>(client.submit({ipc::RailVerb::chunk, static_cast<std::uint16_t>(tx),
                                           static_cast<std::uint32_t>(sent_[tx] & 0xffffff), bytes_}));
        }
        over = over && sent_[tx] == target;
      }
      return any || over;
    });
  }

  void receive(std::uint64_t target) {
    ipc::RailWordsClient& client = group_.rank(1).client;
    run(1, [&](bool& over) {
      bool any = false;
      over = true;
      for (std::uint32_t rx = 0; rx < rings(); ++rx) {
        const std::uint64_t arrived = client.arrived(rx);
        if (arrived > received_[rx]) {
          received_[rx] = arrived;
          any = true;
          static_cast<void>(client.submit({ipc::RailVerb::credit, static_cast<std::uint16_t>(rx), 0, arrived}));
        }
        over = over && received_[rx] == target;
      }
      return any || over;
    });
  }

  TestGroup& group_;
  std::uint32_t slots_;
  std::uint32_t bytes_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> received_;
};

std::uint32_t argument(int argc, char** argv, int index, std::uint32_t otherwise) {
  return index < argc ? static_cast<std::uint32_t>(std::strtoul(argv[index], nullptr, 10)) : otherwise;
}

int run(int argc, char** argv) {
  const std::uint32_t bytes = argument(argc, argv, 1, 73728);
  const std::uint32_t chunks = argument(argc, argv, 2, 20000);
  const std::uint32_t spin_us = argument(argc, argv, 3, 50);
  const std::uint32_t slots = argument(argc, argv, 4, 8);
  const std::uint32_t repetitions = argument(argc, argv, 5, 5);
  fabric::FabricConfig fabric;
  fabric.bind = "127.0.0.1";
  const unsigned cores = std::thread::hardware_concurrency();
  ProxyConfig config;
  config.spin_us = spin_us;
  config.cpus = "0";
  Daemon sender(1, fabric, config);
  config.cpus = cores > 1 ? "1" : "0";
  Daemon receiver(2, fabric, config);
  GroupSpec spec;
  spec.domain_of_rank = {0, 1};
  spec.ring_slots = slots;
  spec.hidden = 1024;
  spec.chunk_bytes = bytes;
  TestGroup group(1, {&sender, &receiver}, spec);
  if (!group.establish() || group.shape->slot_bytes() < bytes - 4096) return 1;
  Flow flow(group, slots, std::min(bytes, group.shape->slot_bytes()));
  std::vector<double> rates;
  flow.gigabytes_per_second(chunks / 4);  // warms up
  for (std::uint32_t i = 0; i < repetitions; ++i) rates.push_back(flow.gigabytes_per_second(chunks));
  std::sort(rates.begin(), rates.end());
  std::printf("wire_rate: %u byte chunks, %u slots, spin %u us: median %.3f GB/s (%.3f to %.3f)\n", bytes, slots,
              spin_us, rates[rates.size() / 2], rates.front(), rates.back());
  return 0;
}

}  // namespace
}  // namespace railhead::daemon

int main(int argc, char** argv) {
  return railhead::daemon::run(argc, argv);
}
