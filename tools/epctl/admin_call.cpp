#include "tools/epctl/admin_call.hpp"

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>

#include "ipc/rpc.hpp"
#include "ipc/schema/control.capnp.h"
#include "ipc/version.hpp"
#include "tools/epctl/find_daemon.hpp"

namespace railhead::epctl {
namespace {

// KJ ignores SIGPIPE for the whole process. It may while we talk to the daemon; `epctl ls | head` ends as usual.
class SigpipeAsItWas {
 public:
  SigpipeAsItWas() { ::sigaction(SIGPIPE, nullptr, &before_); }
  ~SigpipeAsItWas() { ::sigaction(SIGPIPE, &before_, nullptr); }
  SigpipeAsItWas(const SigpipeAsItWas&) = delete;
  SigpipeAsItWas& operator=(const SigpipeAsItWas&) = delete;

 private:
  struct sigaction before_ {};
};

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", seconds);
  return text;
}

Status no_connection(const std::string& socket, const kj::Exception& e) {
  if (knock(socket) == EACCES) {
    return {Code::permission, "uid " + std::to_string(::geteuid()) + " may not connect to " + socket +
                                  ": only root and the daemon's own user administer it"};
  }
  return {Code::unavailable, "no daemon at " + socket + ": " + e.getDescription().cStr()};
}

Status no_answer(const std::string& socket, double timeout_s, const kj::Exception& e) {
  switch (e.getType()) {
    case kj::Exception::Type::OVERLOADED:
      return {Code::timeout, "the daemon at " + socket + " did not answer within " + seconds_text(timeout_s) +
                                 ": it is stopped or overloaded (see its log; --timeout waits longer)"};
    case kj::Exception::Type::DISCONNECTED:
      return {Code::daemon_lost, "the daemon at " + socket + " closed the connection: it ended or was restarted"};
    default: return {Code::system, "call to the daemon at " + socket + " failed: " + e.getDescription().cStr()};
  }
}

// Runs call(admin) under the deadline; it returns Promise<Result<T>>.
template <class T, class F>
Result<T> with_admin(const Options& options, F call) {
  auto found = find_daemon(options.socket);
  if (!found) return fail(found.error());
  const std::string& socket = *found;
  const SigpipeAsItWas sigpipe;
  auto io = kj::setupAsyncIo();
  kj::Own<kj::AsyncIoStream> stream;
  auto& timer = io.provider->getTimer();
  const auto end = timer.now() + static_cast<std::int64_t>(options.timeout_s * 1e6) * kj::MICROSECONDS;
  try {
    auto address = io.provider->getNetwork().parseAddress(kj::str("unix:", socket)).wait(io.waitScope);
    stream = timer.timeoutAt(end, address->connect()).wait(io.waitScope);
  } catch (const kj::Exception& e) {
    return fail(no_connection(socket, e));
  }
  try {
    capnp::TwoPartyClient rpc(*stream);
    auto request = rpc.bootstrap().castAs<schema::Daemon>().adminRequest();
    request.setVersion(ipc::kProtocolVersion);
    auto answer = request.send().then([&call](auto&& response) -> kj::Promise<Result<T>> {
      if (auto good = ipc::check(response.getError()); !good) return Result<T>(fail(good.error()));
      return call(response.getAdmin());
    });
    return timer.timeoutAt(end, kj::mv(answer)).wait(io.waitScope);
  } catch (const kj::Exception& e) {
    return fail(no_answer(socket, options.timeout_s, e));
  }
}

Result<Json> parse(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return fail(Code::protocol, "the daemon's answer is not a JSON object: install the same release on both sides");
  }
  return json;
}

}  // namespace

Result<Json> snapshot(const Options& options, const std::string& what) {
  return with_admin<Json>(options, [&what](schema::Admin::Client admin) -> kj::Promise<Result<Json>> {
    auto request = admin.snapshotRequest();
    request.setWhat(what);
    return request.send().then([](auto&& response) -> Result<Json> {
      if (auto good = ipc::check(response.getError()); !good) return fail(good.error());
      return parse(response.getJson().cStr());
    });
  });
}

Result<void> evict(const Options& options, const Eviction& eviction) {
  return with_admin<void>(options, [&eviction](schema::Admin::Client admin) -> kj::Promise<Result<void>> {
    auto request = admin.evictRequest();
    request.setSession(eviction.session);
    request.setGroup(eviction.group);
    request.setRank(eviction.rank);
    request.setReason(eviction.reason);
    return request.send().then([](auto&& response) -> Result<void> { return ipc::check(response.getError()); });
  });
}

}  // namespace railhead::epctl
