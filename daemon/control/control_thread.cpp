#include "daemon/control/control_thread.hpp"

#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/control/connection.hpp"
#include "daemon/control/listener.hpp"
#include "daemon/control/snapshot.hpp"
#include "daemon/control/waits.hpp"

namespace railhead::daemon {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kSlowLook = 1s;
constexpr auto kPrivateFirst = 10s;  // for the first session of a private daemon
constexpr auto kStopLook = 20ms;

// A pidfd being watched: the descriptor outlives its observer.
struct ExitWatch {
  std::shared_ptr<Session> session;
  kj::UnixEventPort::FdObserver observer;

  ExitWatch(kj::UnixEventPort& port, std::shared_ptr<Session> s)
      : session(std::move(s)), observer(port, session->pidfd.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ) {}
};

Credentials credentials_of(kj::PeerIdentity& identity) {
  Credentials out{UINT32_MAX, 0};
  KJ_IF_MAYBE (local, kj::dynamicDowncastIfAvailable<kj::LocalPeerIdentity>(identity)) {
    const auto creds = local->getCredentials();
    KJ_IF_MAYBE (uid, creds.uid) {
      out.uid = *uid;
    }
    KJ_IF_MAYBE (pid, creds.pid) {
      out.pid = static_cast<std::int32_t>(*pid);
    }
  }
  return out;
}

}  // namespace

ControlThread::ControlThread(ControlParts parts, kj::AsyncIoContext& io)
    : parts_(std::move(parts)),
      io_(io),
      socket_(parts_.config->socket),
      owns_socket_(::sd_listen_fds(0) <= 0),
      last_session_(Clock::now()),
      tasks_(*this) {
  Mailbox* const mailbox = parts_.mailbox;
  sessions_ = std::make_unique<SessionTable>(static_cast<std::size_t>(parts_.config->limits.sessions),
                                             [this, mailbox](std::uint64_t id, ipc::Life how) {
                                               mailbox->post([this, id, how] { liveness_ended(id, how); });
                                             });
  RegistrySurroundings around;
  around.host = parts_.host;
  around.endpoint = parts_.mesh->endpoint();
  around.log = parts_.log;
  around.config = parts_.config;
  around.proxies = parts_.proxies;
  around.post = [mailbox](std::function<void()> task) { mailbox->post(std::move(task)); };
  around.mesh_send = [this](const DaemonEntry& to, const GroupMessage& message) {
    return parts_.mesh->send({to.endpoint, to.host}, encode(message));
  };
  around.retain = [this](const DaemonEntry& peer, bool wanted) { retain(peer, wanted); };
  around.after = [this](std::chrono::milliseconds delay, std::function<void()> task) { after(delay, std::move(task)); };
  around.changed = [] {};
  groups_ = std::make_unique<GroupRegistry>(std::move(around));

  plane_.config = parts_.config;
  plane_.log = parts_.log;
  plane_.host = parts_.host;
  plane_.own_uid = ::geteuid();
  plane_.timer = &io_.provider->getTimer();
  plane_.sessions = sessions_.get();
  plane_.groups = groups_.get();
  plane_.page_fd = parts_.page_fd;
  for (const Proxy* const proxy : parts_.proxies) plane_.bells.push_back(proxy->bell());
  plane_.accepting = [this] { return drain_ ? refusal(*drain_) : Status(); };
  plane_.opened = [this](const std::shared_ptr<Session>& session) { session_opened(session); };
  plane_.hung_up = [this](const std::shared_ptr<Session>& session) {
    // A clean close released the liveness word first: the library has stopped stepping, nothing of it writes any more.
    const auto* const cell = reinterpret_cast<const ipc::LivenessCell*>(session->words.data());
    const bool clean = ipc::life_of(*cell) == ipc::Life::released;
    session_over(session, clean ? "it closed its session" : "its connection to the daemon closed", clean);
  };
  plane_.turned_away = &turned_away_;
  plane_.snapshot = [this](const std::string& what) { return snapshot(what); };
}

void ControlThread::run(const std::function<void()>& ready) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  done_ = kj::mv(paf.fulfiller);
  listener_ = io_.lowLevelProvider->wrapListenSocketFd(parts_.listen_fd, kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
  tasks_.add(parts_.mailbox->serve(io_.unixEventPort));
  tasks_.add(accept_loop());
  watch_slow();
  if (!parts_.config->private_daemon.key.empty()) watch_private();
  systemd_watchdog();
  ready();
  paf.promise.wait(io_.waitScope);
}

void ControlThread::taskFailed(kj::Exception&& exception) {
  parts_.log->error(std::string("control thread: ") + exception.getDescription().cStr());
}

void ControlThread::after(std::chrono::milliseconds delay, std::function<void()> task) {
  tasks_.add(
      io_.provider->getTimer().afterDelay(delay.count() * kj::MILLISECONDS).then([task = std::move(task)] { task(); }));
}

kj::Promise<void> ControlThread::accept_loop() {
  // evalNow: where a client waits already, the call itself throws, and the loop would be over.
  return kj::evalNow([this] { return listener_->acceptAuthenticated(); })
      .then([this](kj::AuthenticatedStream accepted) {
        auto closing = kj::newPromiseAndFulfiller<void>();
        const auto close = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(closing.fulfiller));
        const Credentials who = credentials_of(*accepted.peerIdentity);
        auto connection = kj::heap<Connection>(
            kj::mv(accepted.stream), make_daemon_server(plane_, who, [close] { (*close)->fulfill(); }),
            [this, who, close](std::size_t waiting) {
              parts_.log->warning("the connection of " + ClientProcess{who.pid}.name() +
                                  " is closed: it asks on and on, " + std::to_string(waiting) +
                                  " bytes of answers wait to be read, " + std::to_string(Connection::kMostWaiting) +
                                  " may");
              (*close)->fulfill();
            });
        auto gone = connection->on_disconnect().exclusiveJoin(kj::mv(closing.promise));
        tasks_.add(gone.attach(kj::mv(connection)));
      })
      .catch_([this](kj::Exception&& e) {
        const std::string reason = e.getDescription().cStr();
        if (not_accepted_.note({Code::system, reason}))
          parts_.log->warning("a client could not be accepted: " + reason);
        return io_.provider->getTimer().afterDelay(10 * kj::MILLISECONDS);
      })
      // While draining, too: newcomers and operators get an answer.
      .then([this] { return accept_loop(); });
}

void ControlThread::session_opened(const std::shared_ptr<Session>& session) {
  last_session_ = Clock::now();
  parts_.log->info("session opened by " + session->process.name() + " uid " + std::to_string(session->uid),
                   {.session = session->id, .job = session->job});
  auto watch = kj::heap<ExitWatch>(io_.unixEventPort, session);
  auto exited = watch->observer.whenBecomesReadable();
  exits_.emplace(session->id, exited.then([this, session] { session_over(session, "its process ended", true); })
                                  .attach(kj::mv(watch))
                                  .eagerlyEvaluate([this](kj::Exception&& e) { taskFailed(kj::mv(e)); }));
}

void ControlThread::session_over(const std::shared_ptr<Session>& session, const std::string& how, bool fenced) {
  if (!session->ended) {
    parts_.log->info("session over: " + how, {.session = session->id, .job = session->job});
    sessions_->end(*session, how);
    groups_->session_over(session->id);
  }
  last_session_ = Clock::now();
  if (!fenced) return;
  sessions_->fenced(*session);
  sessions_->forget(session->id);
  // Later: this may be called from the watch itself.
  parts_.mailbox->post([this, id = session->id] { exits_.erase(id); });
  if (session->hang_up) session->hang_up();
}

void ControlThread::liveness_ended(std::uint64_t id, ipc::Life how) {
  const auto session = sessions_->find(static_cast<std::uint32_t>(id));
  if (session == nullptr) return;
  session->watched = false;
  const char* text = "its process ended";
  if (how == ipc::Life::released) text = "it closed its session";
  if (how == ipc::Life::tampered) text = "it overwrote its liveness word";
  session_over(session, text, false);
}

void ControlThread::mesh_message(const mesh::HostId& from, std::vector<std::byte> bytes) {
  auto message = decode(bytes);
  if (!message) {
    const std::string peer = from.hex();
    parts_.log->failure(log::Level::warning, "dropped a message", message.error(), {.peer = peer});
    return;
  }
  groups_->on_message(from, std::move(*message));
}

void ControlThread::mesh_up(const DaemonEntry& peer) {
  const std::string name = peer.host.hex();
  parts_.log->info("connected to the daemon at " + peer.endpoint, {.peer = name});
}

void ControlThread::mesh_down(const DaemonEntry& peer, const Status& reason) {
  if (reason.ok()) return;
  const std::string name = peer.host.hex();
  parts_.log->failure(log::Level::warning, "peer daemon lost", reason, {.peer = name});
  for (Proxy* const proxy : parts_.proxies) proxy->peer_lost({peer.host.bytes, peer.endpoint}, reason);
  groups_->on_peer_lost(peer, reason);
}

void ControlThread::retain(const DaemonEntry& peer, bool wanted) {
  if (!wanted) {
    // Fails only when the mesh has stopped: no link is left to let go.
    (void)parts_.mesh->release(peer.host);
    return;
  }
  const Status done = parts_.mesh->retain({peer.endpoint, peer.host});
  if (done.ok()) return;
  const std::string name = peer.host.hex();
  parts_.log->failure(log::Level::warning, "no link is kept to the daemon at " + peer.endpoint, done, {.peer = name});
}

void ControlThread::trouble(const std::string& text) {
  parts_.log->error(text);
  troubles_.push_back(text);
}

void ControlThread::mesh_refused(const Status& reason) {
  if (turned_away_.note(reason)) parts_.log->failure(log::Level::warning, "mesh: turned away", reason);
}

void ControlThread::with_group(const GroupKey& key, const std::function<void(LocalGroup&)>& f) {
  if (const auto group = groups_->find(key)) f(*group);
}

void ControlThread::watch_slow() {
  const auto limit = static_cast<std::uint64_t>(parts_.config->slow_after_s) * 1000;
  for (const auto& [key, group] : groups_->groups()) {
    for (const WaitView& wait : waits_of(*group)) {
      if (wait.op == 0 || wait.since_ms < limit) continue;
      if (std::exchange(slow_said_[{key, wait.rank}], wait.op) == wait.op) continue;
      const std::string name = short_name(key);
      parts_.log->warning(sentence(wait), {.group = name, .rank = wait.rank, .op = wait.op});
    }
  }
  std::erase_if(slow_said_, [&](const auto& said) { return groups_->find(said.first.first) == nullptr; });
  after(kSlowLook, [this] { watch_slow(); });
}

// A private daemon leaves when nobody needs it any more.
void ControlThread::watch_private() {
  const auto linger = std::chrono::milliseconds(parts_.config->private_daemon.linger_ms);
  const auto limit =
      sessions_->opened() == 0 ? std::max<Clock::duration>(kPrivateFirst, linger) : Clock::duration(linger);
  if (sessions_->all().empty() && Clock::now() - last_session_ > limit) {
    parts_.log->info("nobody needs this private daemon any more");
    return stop(true);
  }
  after(100ms, [this] { watch_private(); });
}

void ControlThread::stop(bool at_once) {
  const auto now = Clock::now();
  if (drain_) {
    if (now < drain_->deadline) parts_.log->info("told to stop again: what is still open is not waited for");
    drain_->deadline = std::min(drain_->deadline, now);
    return;
  }
  drain_ = Drain{now, now + (at_once ? 0s : std::chrono::seconds(parts_.config->drain_s))};
  make_room(at_once);
  ::sd_notify(0, "STOPPING=1");
  parts_.log->info("stopping; " + still_open(*sessions_, *groups_) + ", for at most " +
                   std::to_string(at_once ? 0 : parts_.config->drain_s) + " s");
  watch_stop();
}

// First of all, so that whoever looks for a private daemon from now on finds none and starts another. The place of the
// system daemon is nobody else's: it answers operators and refuses clients there until it ends.
void ControlThread::make_room(bool at_once) {
  if (at_once) return remove_socket();
  if (!owns_socket_ || parts_.config->private_daemon.key.empty()) return;
  if (auto aside = move_socket_aside(socket_)) {
    socket_ = std::move(*aside);
  } else {
    parts_.log->failure(log::Level::warning, "clients find this daemon until it ends", aside.error());
  }
}

void ControlThread::remove_socket() {
  if (!std::exchange(owns_socket_, false) || ::unlink(socket_.c_str()) == 0 || errno == ENOENT) return;
  const Status failed = system_status("unlink " + socket_, errno);
  parts_.log->failure(log::Level::warning, "the socket is left behind", failed);
}

void ControlThread::watch_stop() {
  const bool ended = open_sessions(*sessions_).empty();
  if (!ended && Clock::now() < drain_->deadline) return after(kStopLook, [this] { watch_stop(); });
  if (!ended) parts_.log->warning("the time to drain is over: " + still_open(*sessions_, *groups_) + ", ended now");
  remove_socket();
  groups_->end_all({Code::aborted, "the daemon is stopping"});
  // One more turn, so that answers to waiting clients leave.
  after(kStopLook, [this] { done_->fulfill(); });
}

void ControlThread::systemd_watchdog() {
  std::uint64_t period_us = 0;
  if (::sd_watchdog_enabled(0, &period_us) <= 0) return;
  ::sd_notify(0, "WATCHDOG=1");
  after(std::chrono::milliseconds(std::max<std::uint64_t>(period_us / 2000, 1)), [this] { systemd_watchdog(); });
}

// Reports of the proxies are collected on their threads, the rest here.
kj::Promise<std::string> ControlThread::snapshot(const std::string& what) {
  struct Collected {
    std::vector<ProxyReport> reports;
    std::size_t missing;
    kj::Own<kj::PromiseFulfiller<void>> fulfiller;
  };
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto collected = std::make_shared<Collected>();
  collected->reports.resize(parts_.proxies.size());
  collected->missing = parts_.proxies.size();
  collected->fulfiller = kj::mv(paf.fulfiller);
  Mailbox* const mailbox = parts_.mailbox;
  for (std::size_t i = 0; i < parts_.proxies.size(); ++i) {
    parts_.proxies[i]->report([mailbox, collected, i](ProxyReport report) {
      mailbox->post([collected, i, report = std::move(report)]() mutable {
        collected->reports[i] = std::move(report);
        if (--collected->missing == 0) collected->fulfiller->fulfill();
      });
    });
  }
  return paf.promise.then([this, what, collected] {
    const SnapshotInput in{*parts_.config,
                           parts_.host,
                           parts_.mesh->endpoint(),
                           parts_.started,
                           *sessions_,
                           *groups_,
                           parts_.mesh->peers(),
                           collected->reports,
                           turned_away_,
                           socket_,
                           drain_,
                           troubles_};
    return make_snapshot(what, in);
  });
}

}  // namespace railhead::daemon
