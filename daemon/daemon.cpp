#include "daemon/daemon.hpp"

#include <kj/common.h>
#include <systemd/sd-daemon.h>

#include <csignal>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "daemon/control/control_thread.hpp"
#include "daemon/control/listener.hpp"
#include "daemon/mesh/mesh.hpp"
#include "daemon/proxy/proxy.hpp"
#include "daemon/resources.hpp"
#include "daemon/start_settings.hpp"
#include "ipc/liveness.hpp"
#include "ipc/version.hpp"

namespace railhead::daemon {
namespace {

std::string cpu_list(const std::vector<std::int64_t>& cpus) {
  std::string out;
  for (const std::int64_t cpu : cpus) out += (out.empty() ? "" : ",") + std::to_string(cpu);
  return out;
}

class Epd final : public Daemon {
 public:
  Epd(DaemonOptions options, log::Log log)
      : options_(std::move(options)),
        log_(std::move(log)),
        mailbox_([this](const std::string& text) { log_.error("control thread: " + text); }) {}
  ~Epd() noexcept override {
    if (control_.joinable()) {
      post([](ControlThread& control) { control.stop(true); });
      control_.join();
    }
    // Threads that post to the mailbox end before it does; without a control thread there are proxies still.
    mesh_.reset();
    proxies_.clear();
  }

  Result<void> open();

  void stop() override {
    post([](ControlThread& control) { control.stop(false); });
  }
  void wait() override {
    const std::lock_guard lock(wait_mutex_);
    if (control_.joinable()) control_.join();
  }
  [[nodiscard]] std::string mesh_endpoint() const override { return mesh_->endpoint(); }
  [[nodiscard]] std::string host_id() const override { return host_.hex(); }

 private:
  Result<void> make_page();
  Result<void> start_proxies();
  Result<void> start_mesh();
  Result<void> start_control();
  void control_main(std::promise<Status>& ready);
  ProxyEvents proxy_events();
  // Runs f on the control thread if it still runs.
  void post(std::function<void(ControlThread&)> f) {
    mailbox_.post([this, f = std::move(f)] {
      if (thread_ != nullptr) f(*thread_);
    });
  }

  DaemonOptions options_;
  log::Log log_;
  mesh::HostId host_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Mailbox mailbox_;
  ipc::Segment page_;
  ipc::UniqueFd listen_fd_;
  std::vector<std::unique_ptr<Proxy>> proxies_;
  std::unique_ptr<mesh::Mesh> mesh_;
  ControlThread* thread_ = nullptr;  // control thread only
  std::mutex wait_mutex_;
  std::thread control_;
};

Result<void> Epd::open() {
  if (Status refused = check_start(options_.config); !refused.ok()) return fail(std::move(refused));
  if (Status lacking = check_resources(static_cast<std::size_t>(options_.config.proxy.threads)); !lacking.ok()) {
    return fail(std::move(lacking));
  }
  auto host = mesh::load_or_create_host_id(options_.config.host_id_file);
  if (!host) return fail(host.error());
  host_ = *host;
  auto listening = listen_socket(options_.config);
  if (!listening) return fail(listening.error());
  listen_fd_ = std::move(*listening);
  if (auto done = make_page(); !done) return done;
  if (auto done = start_proxies(); !done) return done;
  if (auto done = start_mesh(); !done) return done;
  return start_control();
}

Result<void> Epd::make_page() {
  auto page = ipc::Segment::create("railhead-daemon", ipc::page_bytes());
  if (!page) return fail(page.error());
  page_ = std::move(*page);
  // Our mapping writes, every later one can only read.
  return page_.freeze_writers();
}

Result<void> Epd::start_proxies() {
  const config::Config& config = options_.config;
  for (std::int64_t i = 0; i < config.proxy.threads; ++i) {
    ProxyConfig proxy;
    proxy.index = static_cast<std::uint32_t>(i);
    proxy.host = host_.bytes;
    proxy.fabric.provider = config.fabric.provider;
    proxy.fabric.endpoint = config.fabric.endpoint;
    proxy.fabric.bind = fabric_bind(config);
    proxy.fabric.faults = config.fabric.fault;
    proxy.fabric.hub = options_.loopback;
    proxy.cpus = cpu_list(config.proxy.cpus);
    proxy.spin_us = static_cast<std::uint32_t>(config.proxy.spin_us);
    proxy.page = reinterpret_cast<ipc::DaemonPage*>(page_.data());
    auto started = Proxy::start(proxy, proxy_events());
    if (!started) return fail(started.error());
    proxies_.push_back(std::move(*started));
  }
  return {};
}

ProxyEvents Epd::proxy_events() {
  ProxyEvents events;
  events.opened = [this](const GroupKey& key, Result<std::vector<WireOffer>> offers) {
    post([key, offers = std::move(offers)](ControlThread& c) {
      c.with_group(key, [&](LocalGroup& g) { g.rails_opened(offers); });
    });
  };
  events.connected = [this](const GroupKey& key, std::uint16_t domain, Result<void> result) {
    post([key, domain, result = std::move(result)](ControlThread& c) {
      c.with_group(key, [&](LocalGroup& g) { g.rails_connected(domain, result); });
    });
  };
  events.failed = [this](const GroupKey& key, std::uint16_t domain, std::uint16_t rank, Status reason) {
    post([key, domain, rank, reason = std::move(reason)](ControlThread& c) {
      c.with_group(key, [&](LocalGroup& g) { g.rails_failed(domain, rank, reason); });
    });
  };
  events.quiesced = [this](const GroupKey& key, std::uint16_t domain,
                           std::vector<std::pair<std::uint16_t, std::uint64_t>> posted) {
    post([key, domain, posted = std::move(posted)](ControlThread& c) {
      c.with_group(key, [&](LocalGroup& g) { g.rails_quiesced(domain, posted); });
    });
  };
  events.closed = [this](const GroupKey& key) {
    post([key](ControlThread& c) { c.with_group(key, [](LocalGroup& g) { g.rails_closed(); }); });
  };
  return events;
}

Result<void> Epd::start_mesh() {
  auto config = mesh_config(options_.config);
  if (!config) return fail(config.error());
  config->host_id = host_;
  mesh::MeshHandlers handlers;
  handlers.on_message = [this](const mesh::HostId& from, std::span<const std::byte> message) {
    post([from, bytes = std::vector<std::byte>(message.begin(), message.end())](ControlThread& c) mutable {
      c.mesh_message(from, std::move(bytes));
    });
  };
  handlers.on_peer_up = [this](const mesh::PeerAddress& peer) {
    post([peer](ControlThread& c) { c.mesh_up({peer.host_id, peer.endpoint}); });
  };
  handlers.on_peer_down = [this](const mesh::PeerAddress& peer, const Status& reason) {
    post([peer, reason](ControlThread& c) { c.mesh_down({peer.host_id, peer.endpoint}, reason); });
  };
  handlers.on_refused = [this](const Status& reason) { post([reason](ControlThread& c) { c.mesh_refused(reason); }); };
  handlers.on_failed = [this](const Status& reason) {
    post([reason](ControlThread& c) { c.trouble("no other daemon can be reached any more: " + reason.message()); });
  };
  auto started = mesh::Mesh::start(std::move(*config), std::move(handlers));
  if (!started) return fail(started.error());
  mesh_ = std::move(*started);
  return {};
}

Result<void> Epd::start_control() {
  std::promise<Status> ready;
  auto result = ready.get_future();
  control_ = std::thread([this, &ready] { control_main(ready); });
  if (Status status = result.get(); !status.ok()) {
    control_.join();
    return fail(std::move(status));
  }
  log_.info("ready: socket " + options_.config.socket + ", mesh " + mesh_->endpoint() + ", host " + host_.hex() +
            ", version " + std::string(ipc::build_string()));
  if (const int said = ::sd_notify(0, "READY=1"); said < 0) {
    const Status failed = system_status("sd_notify", -said);
    log_.failure(log::Level::warning, "systemd was not told that the daemon is ready, and will take it for failed",
                 failed);
  }
  return {};
}

void Epd::control_main(std::promise<Status>& ready) {
  bool told = false;
  try {
    auto io = kj::setupAsyncIo();
    auto life = ipc::LivenessOwner::create(reinterpret_cast<ipc::DaemonPage*>(page_.data())->alive);
    if (!life) {
      told = true;
      return ready.set_value(life.error());
    }
    ControlParts parts{&options_.config,
                       &log_,
                       host_,
                       mesh_.get(),
                       {},
                       reinterpret_cast<ipc::DaemonPage*>(page_.data()),
                       page_.fd(),
                       listen_fd_.release(),
                       &mailbox_,
                       started_};
    for (const auto& proxy : proxies_) parts.proxies.push_back(proxy.get());
    ControlThread control(std::move(parts), io);
    // They use the memory of the groups, which goes with the control thread: peers may write until the last moment.
    KJ_DEFER(proxies_.clear());
    thread_ = &control;
    control.run([&] {
      told = true;
      ready.set_value({});
    });
    thread_ = nullptr;
  } catch (const kj::Exception& e) {
    thread_ = nullptr;
    const Status failed(Code::system, std::string("control thread: ") + e.getDescription().cStr());
    if (!told) return ready.set_value(failed);
    log_.error(failed.to_string());
  }
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::start(DaemonOptions options, log::Log log) {
  auto epd = std::make_unique<Epd>(std::move(options), std::move(log));
  if (auto opened = epd->open(); !opened) return fail(opened.error());
  return epd;
}

}  // namespace railhead::daemon
