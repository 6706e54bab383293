#include "daemon/proxy/proxy_thread.hpp"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "daemon/proxy/cpus.hpp"

namespace railhead::daemon::rail {
namespace {

// While remote headers wait for their window: ranks that open it do not ring.
constexpr std::chrono::milliseconds kShortTick{1};

// The thread inherits this mask: signals are for the daemon's main thread.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;
  ~BlockSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Result<std::unique_ptr<Proxy>> ProxyThread::start(const ProxyConfig& config, std::unique_ptr<Engine> engine) {
  if (!config.cpus.empty()) {
    if (auto cpus = parse_cpu_list(config.cpus); !cpus) return fail(cpus.error());
  }
  ipc::UniqueFd bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell) return fail(system_status("eventfd for the bell of proxy " + std::to_string(config.index), errno));
  std::string device = engine->fabric().describe().domain;
  std::unique_ptr<ProxyThread> proxy(new ProxyThread(config, std::move(engine), std::move(bell), std::move(device)));
  const BlockSignals blocked;
  proxy->thread_ = std::thread([raw = proxy.get()] { raw->run(); });
  return std::unique_ptr<Proxy>(std::move(proxy));
}

ProxyThread::ProxyThread(const ProxyConfig& config, std::unique_ptr<Engine> engine, ipc::UniqueFd bell,
                         std::string device)
    : config_(config),
      engine_(std::move(engine)),
      bell_(std::move(bell)),
      address_(engine_->fabric().address()),
      device_(std::move(device)) {}

ProxyThread::~ProxyThread() {
  // release: pairs with the loop's acquire; the join below orders the rest.
  stop_.store(true, std::memory_order_release);
  ring();
  if (thread_.joinable()) thread_.join();  // it may not have been given
}

void ProxyThread::run() {
  ::pthread_setname_np(::pthread_self(), ("epd-proxy" + std::to_string(config_.index)).c_str());
  const auto bound = bind_thread(config_.cpus, device_);
  binding_ = bound ? *bound : "not bound: " + bound.error().message();
  const std::chrono::microseconds spin(config_.spin_us);
  bool idle = false;
  Clock::time_point idle_since;
  // acquire: what the stopping thread did before is visible.
  while (!stop_.load(std::memory_order_acquire)) {
    if (step()) {
      idle = false;
      continue;
    }
    if (!idle) {
      idle = true;
      idle_since = Clock::now();
    }
    if (Clock::now() - idle_since < spin) {
      // The rank that we wait for may be waiting for this core.
      ::sched_yield();
    } else if (sleep()) {
      idle = false;
    }
  }
}

bool ProxyThread::step() {
  const bool commands = run_commands();
  return engine_->step() || commands;
}

bool ProxyThread::sleep() {
  ipc::set_sleeping(*config_.page, config_.index, true);
  // Whoever submits from here on sees the flag and rings; whoever was before is found now.
  bool woken = step();
  if (!woken) {
    const bool can_sleep = engine_->fabric().arm();
    const bool blind = engine_->fabric().wait_fd() < 0;
    const auto tick = blind || engine_->must_look_soon() ? kShortTick : fabric::kMaxSleep;
    woken = can_sleep || blind ? wait(tick) : true;
  }
  ipc::set_sleeping(*config_.page, config_.index, false);
  return woken;
}

bool ProxyThread::wait(std::chrono::milliseconds tick) {
  std::array<pollfd, 2> fds{{{bell_.get(), POLLIN, 0}, {engine_->fabric().wait_fd(), POLLIN, 0}}};
  if (::poll(fds.data(), fds.size(), static_cast<int>(tick.count())) <= 0) return false;
  if (fds[0].revents != 0) {
    std::uint64_t rings = 0;
    // EAGAIN when somebody else has emptied it: the bell is shared with the ranks.
    [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &rings, sizeof(rings));
  }
  return true;
}

void ProxyThread::push(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  // release: only a hint; the lock orders the commands.
  commanded_.store(true, std::memory_order_release);
  ring();
}

void ProxyThread::ring() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the bell is readable already.
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof(one));
}

bool ProxyThread::run_commands() {
  // acquire: see push().
  if (!commanded_.load(std::memory_order_acquire)) return false;
  // relaxed: cleared before the commands are taken, so one that comes meanwhile is taken now or seen next time.
  commanded_.store(false, std::memory_order_relaxed);
  std::vector<Command> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (Command& command : commands) command(*engine_);
  return !commands.empty();
}

void ProxyThread::open_group(GroupRails rails) {
  push([rails = std::move(rails)](Engine& engine) mutable { engine.open(std::move(rails)); });
}

void ProxyThread::connect_group(const GroupKey& key, std::uint16_t domain, WireOffer offer) {
  push([key, domain, offer = std::move(offer)](Engine& engine) { engine.connect(key, domain, offer); });
}

void ProxyThread::close_group(const GroupKey& key, CloseMode mode) {
  push([key, mode](Engine& engine) { engine.close(key, mode); });
}

void ProxyThread::peer_quiesced(const GroupKey& key, std::uint16_t domain, Posted posted) {
  push([key, domain, posted = std::move(posted)](Engine& engine) mutable {
    engine.peer_quiesced(key, domain, std::move(posted));
  });
}

void ProxyThread::peer_lost(const DaemonId& daemon, const Status& reason) {
  push([daemon, reason](Engine& engine) { engine.peer_lost(daemon, reason); });
}

void ProxyThread::report(std::function<void(ProxyReport)> done) {
  push([this, done = std::move(done)](Engine& engine) {
    ProxyReport out = engine.report();
    out.fabric += ", " + binding_;
    done(std::move(out));
  });
}

}  // namespace railhead::daemon::rail
