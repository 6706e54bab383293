#include "tools/ep-bench/compare/wire_session.hpp"

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "ipc/layout/daemon_page.hpp"
#include "ipc/layout/segment_kind.hpp"
#include "ipc/liveness.hpp"
#include "ipc/pidfd.hpp"
#include "ipc/rpc.hpp"
#include "ipc/segment.hpp"
#include "ipc/version.hpp"

namespace railhead::bench {
namespace {

constexpr std::uint64_t kTimeoutMs = 20'000;

class Session final : public WireSession {
 public:
  Session() = default;
  ~Session() noexcept override = default;

  Status connect(const std::string& socket) {
    return guarded([&] { return hello(socket); });
  }

  Result<rh_unique_id> unique_id() override {
    rh_unique_id out{};
    const Status status = guarded([&]() -> Status {
      auto response = wait(session_.value().uniqueIdRequest().send());
      if (auto good = ipc::check(response.getError()); !good) return good.error();
      const auto id = response.getId();
      std::copy_n(id.begin(), std::min(id.size(), sizeof(out.bytes)), out.bytes);
      return {};
    });
    if (!status.ok()) return fail(status);
    return out;
  }

  Status join(const rh_unique_id& id, std::uint32_t rank, const ipc::GroupParams& params, std::byte fill) override {
    return guarded([&]() -> Status {
      if (Status joined = join_group(id, rank, params); !joined.ok()) return joined;
      return attach(rank, fill);
    });
  }

  [[nodiscard]] const ipc::GroupShape& shape() const override { return shape_; }
  [[nodiscard]] ipc::RailWordsClient& rail() override { return *rail_; }
  [[nodiscard]] ipc::WakeWord& wake() override { return group_.live(local_).wake; }

  void ring_bell() override {
    const auto& page = *reinterpret_cast<const ipc::DaemonPage*>(page_.data());
    if (proxy_ >= bells_.size() || !ipc::needs_bell(page, proxy_)) return;
    const std::uint64_t one = 1;
    (void)!write(bells_[proxy_].get(), &one, sizeof(one));
  }

 private:
  template <class Body>
  static Status guarded(Body&& body) {
    try {
      return body();
    } catch (const kj::Exception& error) {
      return {Code::daemon_lost, std::string("call to the daemon failed: ") + error.getDescription().cStr()};
    }
  }

  template <class T>
  T wait(kj::Promise<T>&& promise) {
    return io_.provider->getTimer().timeoutAfter(kTimeoutMs * kj::MILLISECONDS, kj::mv(promise)).wait(io_.waitScope);
  }
  template <class T>
  capnp::Response<T> wait(capnp::RemotePromise<T>&& promise) {
    return wait(kj::Promise<capnp::Response<T>>(kj::mv(promise)));
  }

  Status map(schema::File::Client file, std::uint64_t bytes, ipc::Access access, ipc::Segment& out) {
    auto mapped = ipc::Segment::map(wait(ipc::fetch(kj::mv(file))), bytes, access, ipc::Prefault::yes);
    if (!mapped) return mapped.error();
    out = std::move(*mapped);
    return {};
  }

  Status hello(const std::string& socket) {
    auto address = wait(io_.provider->getNetwork().parseAddress(kj::str("unix:", socket)));
    stream_ = wait(address->connect());
    rpc_ = kj::heap<capnp::TwoPartyClient>(kj::downcast<kj::AsyncCapabilityStream>(*stream_), ipc::kMaxFdsPerMessage);
    auto request = rpc_->bootstrap().castAs<schema::Daemon>().helloRequest();
    auto client = request.initClient();
    client.setVersion(ipc::kProtocolVersion);
    client.setBuild(ipc::build_string().data());
    client.setFeatures(ipc::kFeatures);
    client.setPid(static_cast<std::uint32_t>(getpid()));
    client.setJob("ep-bench");
    auto pidfd = ipc::open_own_pidfd();
    if (!pidfd) return pidfd.error();
    request.setPidfd(ipc::share(pidfd->get()));
    auto response = wait(request.send());
    if (auto good = ipc::check(response.getError()); !good) return good.error();
    if (Status s = map(response.getPage(), ipc::page_bytes(), ipc::Access::read_only, page_); !s.ok()) return s;
    if (Status s = map(response.getWords(), ipc::page_bytes(), ipc::Access::read_write, words_); !s.ok()) return s;
    for (auto bell : response.getBells()) bells_.push_back(wait(ipc::fetch(bell)));
    session_ = response.getSession();
    auto life = ipc::LivenessOwner::create(*reinterpret_cast<ipc::LivenessCell*>(words_.data()));
    if (!life) return life.error();
    life_.emplace(std::move(*life));
    return {};
  }

  Status join_group(const rh_unique_id& id, std::uint32_t rank, const ipc::GroupParams& params) {
    auto request = session_.value().joinRequest();
    request.setId(kj::arrayPtr(id.bytes, sizeof(id.bytes)));
    request.setRank(rank);
    ipc::fill(request.initParams(), params);
    request.setDeadlineMs(kTimeoutMs);
    auto response = wait(request.send());
    if (auto good = ipc::check(response.getError()); !good) return good.error();
    ipc::GroupMap map;
    map.epoch = response.getEpoch();
    for (const auto domain : response.getDomainOfRank()) map.domain_of_rank.push_back(domain);
    shape_ = ipc::GroupShape(params, std::move(map));
    if (shape_.domains() < 2) return {Code::invalid_argument, "both ranks are on one host: there is no rail"};
    local_ = shape_.local_of(rank);
    proxy_ = response.getProxy();
    member_ = response.getMember();
    return {};
  }

  Status attach(std::uint32_t rank, std::byte fill) {
    auto made = ipc::Segment::create("ep-bench-rail", ipc::RailSegmentLayout(shape_, rank).bytes());
    if (!made) return made.error();
    segment_ = std::move(*made);
    std::fill_n(segment_.data(), segment_.bytes(), fill);
    auto request = member_.value().attachRequest();
    auto offer = request.initSegments(1)[0];
    offer.setKind(static_cast<std::uint8_t>(ipc::SegmentKind::rail));
    offer.setBytes(segment_.bytes());
    offer.setFile(ipc::share(segment_.fd()));
    request.setDeadlineMs(kTimeoutMs);
    auto response = wait(request.send());
    if (auto good = ipc::check(response.getError()); !good) return good.error();
    const std::uint32_t domain = shape_.domain_of(rank);
    const std::uint64_t group_bytes = ipc::GroupSegmentLayout(shape_, domain).bytes();
    if (Status s = map(response.getGroupWords(), group_bytes, ipc::Access::read_write, group_words_); !s.ok()) return s;
    group_ = ipc::GroupSegment(group_words_.data(), shape_, domain);
    const ipc::RailWordsLayout layout(shape_, rank);
    if (Status s = map(response.getRailWords(), layout.bytes(), ipc::Access::read_write, rail_words_); !s.ok())
      return s;
    auto client = ipc::RailWordsClient::attach(rail_words_.data(), layout, response.getGeneration());
    if (!client) return client.error();
    rail_.emplace(*client);
    return {};
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  kj::Own<kj::AsyncIoStream> stream_;
  kj::Own<capnp::TwoPartyClient> rpc_;
  std::optional<schema::Session::Client> session_;
  std::optional<schema::Member::Client> member_;
  ipc::Segment page_, words_, segment_, group_words_, rail_words_;
  std::vector<ipc::UniqueFd> bells_;
  std::optional<ipc::LivenessOwner> life_;
  ipc::GroupShape shape_;
  ipc::GroupSegment group_;
  std::optional<ipc::RailWordsClient> rail_;
  std::uint32_t local_ = 0;
  std::uint32_t proxy_ = 0;
};

}  // namespace

Result<std::unique_ptr<WireSession>> WireSession::open(const std::string& socket) {
  auto session = std::make_unique<Session>();
  if (Status connected = session->connect(socket); !connected.ok()) return fail(connected);
  return session;
}

}  // namespace railhead::bench
