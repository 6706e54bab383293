#include "daemon/control/rpc_server.hpp"

#include <algorithm>
#include <utility>

#include "daemon/control/admin_server.hpp"
#include "daemon/control/session_server.hpp"
#include "ipc/pidfd.hpp"
#include "ipc/version.hpp"

namespace railhead::daemon {
namespace {

// A connection that has not said by then what it wants is closed: it holds descriptors.
constexpr auto kSayBy = 10 * kj::SECONDS;

// Labels are for people: no more of them is kept, logged and shown.
constexpr std::size_t kMostLabel = 256;

std::string label(capnp::Text::Reader text) {
  return std::string(text.cStr()).substr(0, kMostLabel);
}

class DaemonServer final : public schema::Daemon::Server {
 public:
  DaemonServer(ControlPlane& plane, Credentials who, std::function<void()> hang_up)
      : plane_(plane),
        who_(who),
        hang_up_(std::move(hang_up)),
        silence_(plane_.timer->afterDelay(kSayBy)
                     .then([this] {
                       if (!known_) hang_up_();
                     })
                     .eagerlyEvaluate(nullptr)) {}
  ~DaemonServer() noexcept {
    if (session_ != nullptr) plane_.hung_up(session_);
  }

  kj::Promise<void> hello(HelloContext context) override {
    const auto params = context.getParams();
    const auto client = params.getClient();
    if (Status refused = refuse(client); !refused.ok()) {
      ipc::fill(context.getResults().initError(), refused);
      return kj::READY_NOW;
    }
    return ipc::fetch(params.getPidfd()).then([this, context](ipc::UniqueFd pidfd) mutable {
      const auto info = context.getParams().getClient();
      if (auto opened = open(info, std::move(pidfd)); !opened) {
        ipc::fill(context.getResults().initError(), opened.error());
        return;
      }
      answer(context.getResults());
    });
  }

  kj::Promise<void> admin(AdminContext context) override {
    if (context.getParams().getVersion() != ipc::kProtocolVersion) {
      ipc::fill(context.getResults().initError(), version_mismatch(context.getParams().getVersion(), "epctl"));
    } else if (who_.uid != 0 && who_.uid != plane_.own_uid) {
      ipc::fill(
          context.getResults().initError(),
          {Code::permission, "uid " + std::to_string(who_.uid) + " may not administer this daemon: its own user (" +
                                 std::to_string(plane_.own_uid) + ") and root may"});
    } else {
      known_ = true;
      context.getResults().setAdmin(make_admin_server(plane_));
    }
    return kj::READY_NOW;
  }

 private:
  static Status version_mismatch(std::uint32_t theirs, const std::string& whose) {
    return {Code::version_mismatch, whose + " speaks protocol " + std::to_string(theirs) + ", this daemon (" +
                                        std::string(ipc::build_string()) + ") speaks " +
                                        std::to_string(ipc::kProtocolVersion) + "; install the same release"};
  }

  Status refuse(schema::ClientInfo::Reader client) const {
    if (client.getVersion() != ipc::kProtocolVersion) {
      return version_mismatch(client.getVersion(),
                              std::string("the client library (") + client.getBuild().cStr() + ")");
    }
    if (session_ != nullptr) return {Code::invalid_usage, "a connection has one session"};
    if (Status closed = plane_.accepting(); !closed.ok()) return closed;
    if (!is_allowed(plane_, who_.uid)) {
      return {Code::permission, "uid " + std::to_string(who_.uid) + " is not in allowed_uids of this daemon"};
    }
    return {};
  }

  Result<void> open(schema::ClientInfo::Reader client, ipc::UniqueFd pidfd) {
    if (!pidfd) return fail(Code::protocol, "hello without a pidfd");
    // Again: another hello may have come while this one's descriptor was fetched.
    if (session_ != nullptr) return fail(Code::invalid_usage, "a connection has one session");
    auto matches = ipc::pidfd_matches(pidfd.get(), who_.pid);
    if (!matches) return fail(matches.error());
    if (!*matches)
      return fail(Code::permission, "the pidfd is of another process than the one that connected (" +
                                        ClientProcess{who_.pid}.name() + ")");
    auto session = plane_.sessions->open({who_.pid, client.getPid()}, who_.uid, label(client.getJob()),
                                         label(client.getBuild()), std::move(pidfd));
    if (!session) return fail(session.error());
    session_ = *session;
    known_ = true;
    session_->hang_up = hang_up_;
    plane_.opened(session_);
    return {};
  }

  void answer(HelloResults::Builder out) const {
    out.setSession(make_session_server(plane_, session_));
    auto info = out.initInfo();
    info.setVersion(ipc::kProtocolVersion);
    info.setBuild(ipc::build_string().data());
    info.setHostId(plane_.host.hex());
    info.setSession(session_->id);
    const std::pair<const char*, std::int64_t> limits[] = {{"sessions", plane_.config->limits.sessions},
                                                           {"groups", plane_.config->limits.groups},
                                                           {"ranks", plane_.config->limits.ranks},
                                                           {"handles", plane_.config->limits.handles}};
    auto list = info.initLimits(static_cast<capnp::uint>(std::size(limits)));
    for (capnp::uint i = 0; i < list.size(); ++i) {
      list[i].setName(limits[i].first);
      list[i].setValue(static_cast<std::uint64_t>(limits[i].second));
    }
    out.setPage(ipc::share(plane_.page_fd));
    out.setWords(ipc::share(session_->words.fd()));
    auto bells = out.initBells(static_cast<capnp::uint>(plane_.bells.size()));
    for (capnp::uint i = 0; i < bells.size(); ++i) bells.set(i, ipc::share(plane_.bells[i]));
  }

  ControlPlane& plane_;
  Credentials who_;
  std::function<void()> hang_up_;
  std::shared_ptr<Session> session_;
  bool known_ = false;  // it has opened a session or administers
  kj::Promise<void> silence_;
};

}  // namespace

bool is_allowed(const ControlPlane& plane, std::uint32_t uid) {
  const auto& list = plane.config->allowed_uids;
  return list.empty() || uid == 0 || uid == plane.own_uid ||
         std::find(list.begin(), list.end(), static_cast<std::int64_t>(uid)) != list.end();
}

schema::Daemon::Client make_daemon_server(ControlPlane& plane, Credentials who, std::function<void()> hang_up) {
  return kj::heap<DaemonServer>(plane, who, std::move(hang_up));
}

}  // namespace railhead::daemon
