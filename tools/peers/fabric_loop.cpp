// The bare libfabric write loop: chunks from one process to another over tcp, each with remote CQ data, nothing else.
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/ep-bench/stats.hpp"
#include "tools/peers/common_options.hpp"
#include "tools/peers/fabric_endpoint.hpp"
#include "tools/peers/process.hpp"

namespace railhead::peers {
namespace {

struct Options {
  std::size_t chunk = 65536;
  std::size_t megabytes = 512;  // per repetition
  std::size_t window = 32;      // writes in flight
  int repetitions = 5;
  int trips = 1000;
  std::string address = "127.0.0.1";
  std::vector<int> cpus = {0, 1};
  std::vector<std::string> namespaces;
  unsigned timeout_s = 60;
  bool json = false;

  [[nodiscard]] std::uint64_t chunks() const { return std::max<std::uint64_t>(1, (megabytes << 20) / chunk); }
};

Status enter_namespace(const Options& options, std::size_t side) {
  if (options.namespaces.empty()) return {};
  const std::string path = "/run/netns/" + options.namespaces[side];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_status("open " + path, errno);
  const int entered = setns(fd, CLONE_NEWNET);
  const int error = errno;
  close(fd);
  return entered == 0 ? Status() : system_status("enter network namespace " + options.namespaces[side], error);
}

// The set-up channel between the two processes; a socket pair works across network namespaces.
template <class T>
Status send_value(int fd, const T& value) {
  const ssize_t sent = send(fd, &value, sizeof value, MSG_NOSIGNAL);
  return sent == ssize_t{sizeof value} ? Status() : system_status("send to the other process", errno);
}

template <class T>
Status receive_value(int fd, T& value) {
  const ssize_t got = recv(fd, &value, sizeof value, MSG_WAITALL);
  if (got == ssize_t{sizeof value}) return {};
  return got < 0 ? system_status("receive from the other process", errno)
                 : Status(Code::peer_lost, "the other process ended during set-up");
}

struct FreeDeleter {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// One of the two processes. Its memory: `window` slots to write from, then as many to be written to.
class Side {
 public:
  Side(const Options& options, int channel)
      : options_(options),
        channel_(channel),
        bytes_(2 * options.window * options.chunk),
        memory_(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes_ + 4095) / 4096 * 4096))),
        endpoint_(memory_.get(), bytes_) {
    std::memset(memory_.get(), 1, bytes_);
  }

  Status set_up_receiver() {
    const auto port = endpoint_.listen(options_.address);
    if (!port) return port.error();
    if (Status sent = send_value(channel_, *port); !sent.ok()) return sent;
    if (Status accepted = endpoint_.accept(); !accepted.ok()) return accepted;
    return exchange_memory();
  }

  Status set_up_sender() {
    std::uint16_t port = 0;
    if (Status got = receive_value(channel_, port); !got.ok()) return got;
    if (Status connected = endpoint_.connect(options_.address, port); !connected.ok()) return connected;
    return exchange_memory();
  }

  // Chunks from here to there, as many in flight as the window allows; done when the other side has seen all.
  Result<double> send_stream() {
    const std::uint64_t before = endpoint_.completed();
    const std::uint64_t chunks = options_.chunks();
    const double start = now();
    for (std::uint64_t posted = 0; posted < chunks; ++posted) {
      while (posted - (endpoint_.completed() - before) >= options_.window) {
        if (Status polled = endpoint_.poll(); !polled.ok()) return fail(polled);
      }
      if (Status posting = write_chunk(posted); !posting.ok()) return fail(posting);
    }
    if (Status answered = wait_arrivals(1); !answered.ok()) return fail(answered);
    const double elapsed = now() - start;
    if (Status drained = drain(); !drained.ok()) return fail(drained);
    return elapsed;
  }

  Status receive_stream() {
    if (Status got = wait_arrivals(options_.chunks()); !got.ok()) return got;
    if (Status posted = write_chunk(0); !posted.ok()) return posted;
    return drain();
  }

  // One chunk there and one back.
  Result<double> ask() {
    const double start = now();
    if (Status posted = write_chunk(0); !posted.ok()) return fail(posted);
    if (Status answered = wait_arrivals(1); !answered.ok()) return fail(answered);
    const double elapsed = now() - start;
    if (Status drained = drain(); !drained.ok()) return fail(drained);
    return elapsed;
  }

  Status answer() {
    if (Status got = wait_arrivals(1); !got.ok()) return got;
    if (Status posted = write_chunk(0); !posted.ok()) return posted;
    return drain();
  }

 private:
  Status exchange_memory() {
    RemoteMemory peer;
    if (Status sent = send_value(channel_, endpoint_.own_memory()); !sent.ok()) return sent;
    if (Status got = receive_value(channel_, peer); !got.ok()) return got;
    endpoint_.set_peer_memory(peer);
    return {};
  }

  Status write_chunk(std::uint64_t number) {
    const std::size_t slot = number % options_.window;
    ++posted_;
    return endpoint_.write(slot * options_.chunk, (options_.window + slot) * options_.chunk, options_.chunk, number);
  }

  Status wait_arrivals(std::uint64_t count) {
    awaited_ += count;
    while (endpoint_.arrived() < awaited_) {
      if (Status polled = endpoint_.poll(); !polled.ok()) return polled;
    }
    return {};
  }

  Status drain() {
    while (endpoint_.completed() < posted_) {
      if (Status polled = endpoint_.poll(); !polled.ok()) return polled;
    }
    return {};
  }

  const Options& options_;
  int channel_;
  std::size_t bytes_;
  std::unique_ptr<std::byte, FreeDeleter> memory_;
  FabricEndpoint endpoint_;
  std::uint64_t posted_ = 0;
  std::uint64_t awaited_ = 0;
};

Status receive_all(const Options& options, int channel) {
  end_after(options.timeout_s, "fabric_loop");  // an alarm is not inherited
  if (Status pinned = pin_to_cpu(options.cpus[1]); !pinned.ok()) return pinned;
  if (Status entered = enter_namespace(options, 1); !entered.ok()) return entered;
  Side side(options, channel);
  Status status = side.set_up_receiver();
  for (int i = 0; status.ok() && i < options.trips; ++i) status = side.answer();
  for (int i = 0; status.ok() && i < options.repetitions; ++i) status = side.receive_stream();
  char end = 0;
  if (status.ok()) status = receive_value(channel, end);  // stay until the sender has its last completion
  return status;
}

struct Samples {
  std::vector<double> gb_s;
  std::vector<double> half_trip_us;
};

Result<Samples> send_all(const Options& options, int channel) {
  if (Status pinned = pin_to_cpu(options.cpus[0]); !pinned.ok()) return fail(pinned);
  if (Status entered = enter_namespace(options, 0); !entered.ok()) return fail(entered);
  Side side(options, channel);
  if (Status ready = side.set_up_sender(); !ready.ok()) return fail(ready);
  Samples samples;
  for (int i = 0; i < options.trips; ++i) {
    const auto seconds = side.ask();
    if (!seconds) return fail(seconds.error());
    samples.half_trip_us.push_back(*seconds / 2 * 1e6);
  }
  for (int i = 0; i < options.repetitions; ++i) {
    const auto seconds = side.send_stream();
    if (!seconds) return fail(seconds.error());
    samples.gb_s.push_back(static_cast<double>(options.chunks() * options.chunk) / *seconds / 1e9);
  }
  if (Status ended = send_value(channel, char{1}); !ended.ok()) return fail(ended);
  return samples;
}

void report(const Options& options, const Samples& samples) {
  const double rate = bench::median(samples.gb_s);
  const double p50 = bench::median(samples.half_trip_us);
  const double p99 = bench::percentile(samples.half_trip_us, 99);
  if (!options.json) {
    std::printf("chunk %zu bytes, window %zu: %.3f GB/s, one way p50 %.2f us, p99 %.2f us\n", options.chunk,
                options.window, rate, p50, p99);
    return;
  }
  const nlohmann::json out = {{"chunk", options.chunk},       {"window", options.window}, {"gb_s", rate},
                              {"samples_gb_s", samples.gb_s}, {"one_way_us_p50", p50},    {"one_way_us_p99", p99}};
  std::printf("%s\n", out.dump().c_str());
}

int run(const Options& options) {
  const auto complain = [](const Status& status) {
    std::fprintf(stderr, "fabric_loop: %s\n", status.message().c_str());
    return kFailed;
  };
  int channel[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0)
    return complain(system_status("socketpair", errno));
  const auto child = run_in_child([&] {
    close(channel[0]);
    const Status received = receive_all(options, channel[1]);
    return received.ok() ? static_cast<int>(kOk) : complain(received);
  });
  if (!child) return complain(child.error());
  close(channel[1]);
  const auto samples = send_all(options, channel[0]);
  close(channel[0]);  // a receiver in set-up ends now
  if (!samples) return complain(samples.error());
  if (const int code = wait_for_child(*child); code != kOk) return code;
  report(options, *samples);
  return kOk;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--chunk", options.chunk, "Bytes of one write")->capture_default_str()->check(CLI::Range(8, 1 << 26));
  app.add_option("--megabytes", options.megabytes, "Bytes of one repetition, in MiB")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--window", options.window, "Writes in flight")->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--repetitions", options.repetitions, "Repetitions, of which the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--trips", options.trips, "Round trips for the latency")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_option("--address", options.address, "Address that the receiver listens on")->capture_default_str();
  app.add_option("--namespaces", options.namespaces, "Network namespaces (ip netns) of sender and receiver; root")
      ->delimiter(',')
      ->expected(2);
  app.add_option("--cpus", options.cpus, "CPUs of sender and receiver, -1 for any")
      ->capture_default_str()
      ->delimiter(',')
      ->expected(2);
  add_common_options(app, options.timeout_s, options.json);
}

}  // namespace
}  // namespace railhead::peers

int main(int argc, char** argv) {
  using namespace railhead::peers;
  Options options;
  CLI::App app("Rate and latency of bare libfabric writes (tcp, FI_EP_MSG) between two processes");
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  end_after(options.timeout_s, "fabric_loop");
  return run(options);
}
