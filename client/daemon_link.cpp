#include "client/daemon_link.hpp"

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/async.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <future>
#include <map>
#include <thread>
#include <type_traits>
#include <utility>

#include "client/daemon_choice.hpp"
#include "client/kj_signals.hpp"
#include "client/signals.hpp"
#include "client/unreachable.hpp"
#include "ipc/layout/daemon_page.hpp"
#include "ipc/liveness.hpp"
#include "ipc/pidfd.hpp"
#include "ipc/rpc.hpp"
#include "ipc/schema/control.capnp.h"
#include "ipc/version.hpp"

namespace railhead::client {

using ipc::check;
using ipc::fetch;
using ipc::fill;
using ipc::share;

namespace {

constexpr Milliseconds kCallTimeout = 10'000;
constexpr Milliseconds kGrace = 2'000;  // for the daemon to answer at its own deadline before ours

void fill(schema::Segment::Builder out, const SegmentOffer& in) {
  out.setKind(static_cast<std::uint8_t>(in.kind));
  out.setId(in.id);
  out.setBytes(in.bytes);
  out.setFile(share(in.fd));
}

Status from_exception(const kj::Exception& e) {
  const std::string text = e.getDescription().cStr();
  if (e.getType() == kj::Exception::Type::DISCONNECTED) {
    return {Code::daemon_lost, "the daemon closed the connection: " + text};
  }
  if (e.getType() == kj::Exception::Type::OVERLOADED) {
    return {Code::timeout, "the daemon did not answer in time: " + text};
  }
  return {Code::system, "call to the daemon failed: " + text};
}

// What lives on the link's thread and nowhere else.
struct Connection {
  kj::AsyncIoContext io = setup_async_io();
  kj::Own<kj::AsyncIoStream> stream;
  kj::Own<capnp::TwoPartyClient> rpc;
  kj::Maybe<schema::Session::Client> session;
  std::map<std::uint32_t, schema::Member::Client> members;
  std::uint32_t next_member = 1;
};

class Link final : public DaemonLink {
 public:
  Link() = default;
  ~Link() noexcept override;

  Status open(const Greeting& greeting);

  Result<std::vector<std::uint8_t>> unique_id() override;
  Result<JoinResult> join(const std::vector<std::uint8_t>& id, std::uint32_t rank, const ipc::GroupParams& params,
                          Milliseconds timeout) override;
  Result<AttachResult> attach(std::uint32_t member, const std::vector<SegmentOffer>& segments,
                              Milliseconds timeout) override;
  Result<void> add_segment(std::uint32_t member, const SegmentOffer& segment) override;
  Result<PeerSegment> peer_segment(std::uint32_t member, std::uint32_t rank, std::uint8_t id) override;
  void abort(std::uint32_t member, const Status& reason) override;
  void refused(std::uint32_t member, std::uint64_t op, bool planned, const std::string& reason) override;
  Result<void> leave(std::uint32_t member) override;

  [[nodiscard]] bool alive() const override {
    // relaxed: a hint that is looked at again on the next tick.
    return connected_.load(std::memory_order_relaxed) && ipc::is_alive(page()->alive);
  }
  void ring_bell(std::uint32_t proxy) const override {
    if (proxy >= bells_.size() || !ipc::needs_bell(*page(), proxy)) return;
    const std::uint64_t one = 1;
    (void)!::write(bells_[proxy].get(), &one, sizeof(one));
  }

 private:
  void run(const Greeting& greeting, std::promise<Status>& opened);
  Status hello(Connection& c, const Greeting& greeting);
  [[nodiscard]] const ipc::DaemonPage* page() const { return reinterpret_cast<const ipc::DaemonPage*>(page_.data()); }

  // Runs f(connection) on the link's thread; f returns Promise<Result<T>>. The deadline holds there.
  template <class T, class F>
  Result<T> call(Milliseconds timeout, F f);

  std::thread thread_;
  std::atomic<bool> connected_{false};
  Connection* connection_ = nullptr;  // valid while executor_ is
  kj::Maybe<const kj::Executor&> executor_;
  kj::Own<kj::CrossThreadPromiseFulfiller<void>> stop_;
  ipc::Segment page_;
  ipc::Segment words_;
  std::vector<ipc::UniqueFd> bells_;
};

Link::~Link() noexcept {
  if (thread_.joinable()) {
    if (stop_.get() != nullptr) stop_->fulfill();
    thread_.join();
  }
}

Status Link::open(const Greeting& greeting) {
  std::promise<Status> opened;
  auto result = opened.get_future();
  thread_ = std::thread([this, &greeting, &opened] { run(greeting, opened); });
  return result.get();
}

void Link::run(const Greeting& greeting, std::promise<Status>& opened) {
  block_all_signals();
  bool told = false;
  try {
    Connection c;
    const Status hello_status = hello(c, greeting);
    if (!hello_status.ok()) {
      told = true;
      opened.set_value(hello_status);
      return;
    }
    auto cell = reinterpret_cast<ipc::LivenessCell*>(words_.data());
    auto life = ipc::LivenessOwner::create(*cell);
    auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
    stop_ = kj::mv(paf.fulfiller);
    connection_ = &c;
    executor_ = kj::getCurrentThreadExecutor();
    connected_.store(true, std::memory_order_relaxed);  // relaxed: a hint, as in alive()
    told = true;
    opened.set_value(life ? Status() : life.error());
    auto hang_up = c.rpc->onDisconnect().then([this]() {
      connected_.store(false, std::memory_order_relaxed);  // relaxed: a hint, as in alive()
      return kj::Promise<void>(kj::NEVER_DONE);
    });
    paf.promise.exclusiveJoin(kj::mv(hang_up)).wait(c.io.waitScope);
    executor_ = nullptr;
    if (life) (void)life->release();
  } catch (const kj::Exception& e) {
    connected_.store(false, std::memory_order_relaxed);  // relaxed: a hint, as in alive()
    if (!told) opened.set_value(from_exception(e));
  }
}

Status Link::hello(Connection& c, const Greeting& greeting) {
  auto& timer = c.io.provider->getTimer();
  const auto limit = greeting.timeout * kj::MILLISECONDS;
  // Not KJ's connect(), which fails at once when many ranks start together and the daemon's queue is full.
  ipc::UniqueFd socket = connect_to(greeting.socket, std::chrono::milliseconds(greeting.timeout));
  if (!socket) return why_unreachable(greeting.socket, errno);
  c.stream = c.io.lowLevelProvider->wrapUnixSocketFd(
      socket.release(), kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP | kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC);
  c.rpc = kj::heap<capnp::TwoPartyClient>(kj::downcast<kj::AsyncCapabilityStream>(*c.stream), ipc::kMaxFdsPerMessage);
  auto request = c.rpc->bootstrap().castAs<schema::Daemon>().helloRequest();
  auto client = request.initClient();
  client.setVersion(ipc::kProtocolVersion);
  client.setBuild(ipc::build_string().data());
  client.setFeatures(ipc::kFeatures);
  client.setPid(static_cast<std::uint32_t>(::getpid()));
  client.setJob(greeting.job);
  auto pidfd = ipc::open_own_pidfd();
  if (!pidfd) return pidfd.error();
  request.setPidfd(share(pidfd->get()));
  auto response = timer.timeoutAfter(limit, request.send()).wait(c.io.waitScope);
  if (auto good = check(response.getError()); !good) return good.error();

  auto page = fetch(response.getPage()).wait(c.io.waitScope);
  auto mapped = ipc::Segment::map(std::move(page), ipc::page_bytes(), ipc::Access::read_only, ipc::Prefault::yes);
  if (!mapped) return mapped.error();
  page_ = std::move(*mapped);
  auto words = fetch(response.getWords()).wait(c.io.waitScope);
  mapped = ipc::Segment::map(std::move(words), ipc::page_bytes(), ipc::Access::read_write, ipc::Prefault::yes);
  if (!mapped) return mapped.error();
  words_ = std::move(*mapped);
  for (auto bell : response.getBells()) bells_.push_back(fetch(bell).wait(c.io.waitScope));
  c.session = response.getSession();
  return {};
}

template <class T, class F>
Result<T> Link::call(Milliseconds timeout, F f) {
  KJ_IF_MAYBE (executor, executor_) {
    try {
      return executor->executeSync([&]() -> kj::Promise<Result<T>> {
        Connection& c = *connection_;
        auto guarded = kj::evalNow([&] { return f(c); });
        if (timeout != UINT64_MAX) {
          guarded = c.io.provider->getTimer().timeoutAfter(timeout * kj::MILLISECONDS, kj::mv(guarded));
        }
        return guarded.then([](Result<T>&& good) { return kj::mv(good); },
                            [](kj::Exception&& e) -> Result<T> { return fail(from_exception(e)); });
      });
    } catch (const kj::Exception& e) {
      return fail(from_exception(e));
    }
  }
  return fail(Code::daemon_lost, "the connection to the daemon is closed; open the session again");
}

Result<std::vector<std::uint8_t>> Link::unique_id() {
  using Out = std::vector<std::uint8_t>;
  return call<Out>(kCallTimeout, [](Connection& c) {
    return KJ_ASSERT_NONNULL(c.session).uniqueIdRequest().send().then([](auto&& response) -> Result<Out> {
      if (auto good = check(response.getError()); !good) return fail(good.error());
      const auto id = response.getId();
      return Out(id.begin(), id.end());
    });
  });
}

Result<JoinResult> Link::join(const std::vector<std::uint8_t>& id, std::uint32_t rank, const ipc::GroupParams& params,
                              Milliseconds timeout) {
  const Milliseconds limit = timeout == 0 ? UINT64_MAX : timeout + kGrace;
  return call<JoinResult>(limit, [&](Connection& c) {
    auto request = KJ_ASSERT_NONNULL(c.session).joinRequest();
    request.setId(kj::arrayPtr(id.data(), id.size()));
    request.setRank(rank);
    fill(request.initParams(), params);
    request.setDeadlineMs(timeout);
    return request.send().then([&c](auto&& response) -> Result<JoinResult> {
      if (auto good = check(response.getError()); !good) return fail(good.error());
      JoinResult out;
      out.member = c.next_member++;
      out.map.epoch = response.getEpoch();
      out.name = response.getName().cStr();
      for (const auto domain : response.getDomainOfRank()) out.map.domain_of_rank.push_back(domain);
      out.proxy = response.getProxy();
      c.members.emplace(out.member, response.getMember());
      return out;
    });
  });
}

Result<AttachResult> Link::attach(std::uint32_t member, const std::vector<SegmentOffer>& segments,
                                  Milliseconds timeout) {
  const Milliseconds limit = timeout == 0 ? UINT64_MAX : timeout + kGrace;
  return call<AttachResult>(limit, [&](Connection& c) {
    auto request = c.members.at(member).attachRequest();
    auto list = request.initSegments(static_cast<capnp::uint>(segments.size()));
    for (capnp::uint i = 0; i < list.size(); ++i) fill(list[i], segments[i]);
    request.setDeadlineMs(timeout);
    return request.send().then([](auto&& response) -> kj::Promise<Result<AttachResult>> {
      if (auto good = check(response.getError()); !good) return Result<AttachResult>(fail(good.error()));
      const auto generation = response.getGeneration();
      auto rail =
          response.hasRailWords() ? fetch(response.getRailWords()) : kj::Promise<ipc::UniqueFd>(ipc::UniqueFd());
      return fetch(response.getGroupWords()).then([generation, rail = kj::mv(rail)](ipc::UniqueFd group) mutable {
        return rail.then([generation, group = kj::mv(group)](ipc::UniqueFd words) mutable -> Result<AttachResult> {
          return AttachResult{std::move(group), std::move(words), generation};
        });
      });
    });
  });
}

Result<void> Link::add_segment(std::uint32_t member, const SegmentOffer& segment) {
  return call<void>(kCallTimeout, [&](Connection& c) {
    auto request = c.members.at(member).addSegmentRequest();
    fill(request.initSegment(), segment);
    return request.send().then([](auto&& response) -> Result<void> { return check(response.getError()); });
  });
}

Result<PeerSegment> Link::peer_segment(std::uint32_t member, std::uint32_t rank, std::uint8_t id) {
  return call<PeerSegment>(kCallTimeout, [&](Connection& c) {
    auto request = c.members.at(member).peerSegmentRequest();
    request.setRank(rank);
    request.setId(id);
    return request.send().then([](auto&& response) -> kj::Promise<Result<PeerSegment>> {
      if (auto good = check(response.getError()); !good) return Result<PeerSegment>(fail(good.error()));
      const auto segment = response.getSegment();
      const auto kind = static_cast<ipc::SegmentKind>(segment.getKind());
      const auto bytes = segment.getBytes();
      return fetch(segment.getFile()).then([kind, bytes](ipc::UniqueFd fd) -> Result<PeerSegment> {
        return PeerSegment{kind, bytes, std::move(fd)};
      });
    });
  });
}

void Link::abort(std::uint32_t member, const Status& reason) {
  (void)call<void>(kCallTimeout, [&](Connection& c) -> kj::Promise<Result<void>> {
    auto request = c.members.at(member).abortRequest();
    request.setCode(static_cast<std::uint16_t>(reason.code()));
    request.setReason(reason.message());
    request.send().ignoreResult().detach([](kj::Exception&&) {});
    return Result<void>();
  });
}

void Link::refused(std::uint32_t member, std::uint64_t op, bool planned, const std::string& reason) {
  (void)call<void>(kCallTimeout, [&](Connection& c) -> kj::Promise<Result<void>> {
    auto request = c.members.at(member).refusedRequest();
    request.setOp(op);
    request.setPlanned(planned);
    request.setReason(reason);
    request.send().ignoreResult().detach([](kj::Exception&&) {});
    return Result<void>();
  });
}

Result<void> Link::leave(std::uint32_t member) {
  return call<void>(kCallTimeout, [member](Connection& c) {
    auto request = c.members.at(member).leaveRequest();
    return request.send().then([&c, member](auto&& response) -> Result<void> {
      c.members.erase(member);
      return check(response.getError());
    });
  });
}

}  // namespace

Result<std::unique_ptr<DaemonLink>> DaemonLink::connect(const Greeting& greeting) {
  auto link = std::make_unique<Link>();
  if (Status status = link->open(greeting); !status.ok()) return fail(std::move(status));
  return link;
}

}  // namespace railhead::client
