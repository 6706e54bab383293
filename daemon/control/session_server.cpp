#include "daemon/control/session_server.hpp"

#include <kj/async.h>

#include <algorithm>
#include <utility>

#include "daemon/control/rpc_server.hpp"
#include "daemon/group/coordinator.hpp"
#include "ipc/deadline.hpp"

namespace railhead::daemon {
namespace {

kj::Promise<ArenaSegment> fetch_segment(schema::Segment::Reader in) {
  const auto kind = static_cast<ipc::SegmentKind>(in.getKind());
  const auto bytes = in.getBytes();
  return ipc::fetch(in.getFile()).then([kind, bytes](ipc::UniqueFd fd) {
    return ArenaSegment{kind, bytes, std::move(fd)};
  });
}

// A segment of another rank, for as long as the client keeps the capability.
class SharedFile final : public schema::File::Server {
 public:
  SharedFile(std::shared_ptr<const ipc::UniqueFd> fd, std::shared_ptr<std::uint32_t> live)
      : fd_(std::move(fd)), live_(std::move(live)) {
    ++*live_;
  }
  ~SharedFile() noexcept { --*live_; }
  kj::Maybe<int> getFd() override { return fd_->get(); }

 private:
  std::shared_ptr<const ipc::UniqueFd> fd_;
  std::shared_ptr<std::uint32_t> live_;
};

// The library lets go of each as soon as it has its descriptor.
constexpr std::uint32_t kMostLiveFiles = 256;

class MemberServer final : public schema::Member::Server {
 public:
  MemberServer(ControlPlane& plane, std::shared_ptr<Session> session, std::shared_ptr<LocalGroup> group,
               std::uint32_t rank)
      : plane_(plane), session_(std::move(session)), group_(std::move(group)), rank_(rank) {}

  kj::Promise<void> attach(AttachContext context) override {
    const auto segments = context.getParams().getSegments();
    if (segments.size() > 1) {
      ipc::fill(context.getResults().initError(), {Code::protocol, "attach takes the rail segment alone"});
      return kj::READY_NOW;
    }
    if (segments.size() == 0) return attach_with(context, std::nullopt);
    return fetch_segment(segments[0]).then([this, context](ArenaSegment rail) mutable {
      return attach_with(context, std::move(rail));
    });
  }

  kj::Promise<void> addSegment(AddSegmentContext context) override {
    const auto id = context.getParams().getSegment().getId();
    return fetch_segment(context.getParams().getSegment()).then([this, context, id](ArenaSegment segment) mutable {
      if (auto added = group_->add_segment(rank_, id, std::move(segment)); !added) {
        ipc::fill(context.getResults().initError(), added.error());
      }
    });
  }

  kj::Promise<void> peerSegment(PeerSegmentContext context) override {
    const auto params = context.getParams();
    auto found = group_->peer_segment(rank_, params.getRank(), params.getId());
    if (!found) {
      ipc::fill(context.getResults().initError(), found.error());
      return kj::READY_NOW;
    }
    if (*live_files_ >= kMostLiveFiles) {
      ipc::fill(
          context.getResults().initError(),
          {Code::limit_exceeded, "rank " + std::to_string(rank_) + " keeps " + std::to_string(*live_files_) +
                                     " capabilities for memory of other ranks, " + std::to_string(kMostLiveFiles) +
                                     " are allowed: drop those that are mapped"});
      return kj::READY_NOW;
    }
    auto out = context.getResults().initSegment();
    out.setKind(static_cast<std::uint8_t>((*found)->kind));
    out.setId(params.getId());
    out.setBytes((*found)->bytes);
    out.setFile(kj::heap<SharedFile>((*found)->fd, live_files_));
    return kj::READY_NOW;
  }

  kj::Promise<void> abort(AbortContext context) override {
    const auto params = context.getParams();
    const bool known = params.getCode() != 0 && params.getCode() < static_cast<std::uint16_t>(Code::in_progress);
    const auto code = known ? static_cast<Code>(params.getCode()) : Code::aborted;
    group_->abort(rank_, {code, params.getReason().cStr()});
    return kj::READY_NOW;
  }

  kj::Promise<void> refused(RefusedContext context) override {
    const auto params = context.getParams();
    group_->refused({rank_, params.getOp(), params.getPlanned(), params.getReason().cStr()});
    return kj::READY_NOW;
  }

  kj::Promise<void> leave(LeaveContext) override {
    group_->leave(rank_);
    std::erase_if(session_->memberships, [&](const auto& m) { return m.first == group_ && m.second == rank_; });
    return kj::READY_NOW;
  }

 private:
  kj::Promise<void> attach_with(AttachContext context, std::optional<ArenaSegment> rail) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
    group_->attach(rank_, std::move(rail), [context, fulfiller](Result<Attached> attached) mutable {
      if (!(*fulfiller)->isWaiting()) return;
      // No descriptor left, for one: this rank's trouble alone.
      KJ_IF_MAYBE (thrown, kj::runCatchingExceptions([&] { answer(context, attached); })) {
        ipc::fill(context.getResults().initError(), {Code::unavailable, thrown->getDescription().cStr()});
      }
      (*fulfiller)->fulfill();
    });
    auto promise = kj::mv(paf.promise);
    const std::uint64_t limit = ipc::bounded_ms(context.getParams().getDeadlineMs());
    if (limit == 0) return promise;
    return promise.exclusiveJoin(
        plane_.timer->afterDelay(limit * kj::MILLISECONDS).then([this, context, limit]() mutable {
          ipc::fill(
              context.getResults().initError(),
              {Code::timeout, "rank " + std::to_string(rank_) + " waited " + std::to_string(limit) +
                                  " ms for the other ranks to attach their memory" +
                                  (group_->missing().empty() ? "" : "; missing: " + rank_list(group_->missing()))});
          group_->lost(rank_, "gave up");
        }));
  }

  static void answer(AttachContext context, const Result<Attached>& attached) {
    if (!attached) return ipc::fill(context.getResults().initError(), attached.error());
    auto out = context.getResults();
    out.setGroupWords(ipc::share(attached->group_words));
    if (attached->rail_words >= 0) out.setRailWords(ipc::share(attached->rail_words));
    out.setGeneration(attached->generation);
  }

  ControlPlane& plane_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<LocalGroup> group_;
  std::uint32_t rank_;
  std::shared_ptr<std::uint32_t> live_files_ = std::make_shared<std::uint32_t>(0);
};

class SessionServer final : public schema::Session::Server {
 public:
  SessionServer(ControlPlane& plane, std::shared_ptr<Session> session) : plane_(plane), session_(std::move(session)) {}

  kj::Promise<void> uniqueId(UniqueIdContext context) override {
    watch();
    auto id = make_id();
    if (!id) {
      ipc::fill(context.getResults().initError(), id.error());
      return kj::READY_NOW;
    }
    auto bytes = encode(*id);
    if (!bytes) {
      ipc::fill(context.getResults().initError(), bytes.error());
    } else {
      context.getResults().setId(kj::arrayPtr(bytes->data(), bytes->size()));
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> join(JoinContext context) override {
    watch();
    const auto params = context.getParams();
    const std::uint32_t rank = params.getRank();
    auto group = open_group(params);
    if (!group) {
      ipc::fill(context.getResults().initError(), group.error());
      return kj::READY_NOW;
    }
    const std::shared_ptr<LocalGroup> joined = *group;
    auto paf = kj::newPromiseAndFulfiller<void>();
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
    auto answered = std::make_shared<bool>(false);
    auto is_member = std::make_shared<bool>(false);
    joined->join(rank, {session_->id, session_->process, session_->uid}, ipc::read(params.getParams()),
                 [this, context, fulfiller, answered, is_member, joined, rank](Result<Mapped> mapped) mutable {
                   *answered = true;
                   if (!mapped) {
                     std::erase_if(session_->memberships,
                                   [&](const auto& m) { return m.first == joined && m.second == rank; });
                   }
                   if (!(*fulfiller)->isWaiting()) return;
                   if (!mapped) {
                     ipc::fill(context.getResults().initError(), mapped.error());
                     // The client has nothing that it could close.
                     if (*is_member) forget(joined, rank);
                   } else {
                     answer(context.getResults(), *mapped, joined, rank);
                   }
                   (*fulfiller)->fulfill();
                 });
    if (!*answered) {
      session_->memberships.emplace_back(joined, rank);
      *is_member = true;
    }
    auto promise = kj::mv(paf.promise);
    if (const std::uint64_t limit = ipc::bounded_ms(params.getDeadlineMs()); limit != 0) {
      promise = promise.exclusiveJoin(plane_.timer->afterDelay(limit * kj::MILLISECONDS)
                                          .then([this, context, joined, rank, limit, answered]() mutable {
                                            *answered = true;
                                            give_up(context.getResults(), joined, rank, limit);
                                          }));
    }
    return promise.attach(kj::defer([this, joined, rank, answered]() {
      if (!*answered) forget(joined, rank);
    }));
  }

 private:
  Status over() const {
    return {Code::invalid_usage, "the daemon ended this session: " + session_->end_reason + "; open a new one"};
  }

  // The client owns its liveness word by now.
  void watch() {
    const Status failed = plane_.sessions->watch(*session_);
    if (failed.ok()) return;
    plane_.log->failure(log::Level::warning, unwatched_text(*session_), failed, {.session = session_->id});
  }

  Result<UniqueId> make_id() {
    if (session_->ended) return fail(over());
    if (Status closed = plane_.accepting(); !closed.ok()) return fail(std::move(closed));
    return plane_.groups->make_id(session_->id);
  }

  Result<std::shared_ptr<LocalGroup>> open_group(schema::Session::JoinParams::Reader params) {
    if (session_->ended) return fail(over());
    auto id = decode_unique_id(std::span(params.getId().begin(), params.getId().size()));
    if (!id) return fail(id.error());
    const ipc::GroupParams group = ipc::read(params.getParams());
    if (auto good = ipc::validate(group); !good) return fail(good.error());
    if (params.getRank() >= group.ranks) {
      return fail(Code::invalid_argument,
                  "rank is " + std::to_string(params.getRank()) + ", ranks is " + std::to_string(group.ranks));
    }
    if (group.ranks > plane_.config->limits.ranks) {
      return fail(Code::limit_exceeded, "ranks is " + std::to_string(group.ranks) + ", limits.ranks is " +
                                            std::to_string(plane_.config->limits.ranks));
    }
    if (group.max_handles > plane_.config->limits.handles) {
      return fail(Code::limit_exceeded, "max_handles is " + std::to_string(group.max_handles) + ", limits.handles is " +
                                            std::to_string(plane_.config->limits.handles));
    }
    // A group that is being made is no new one: the ranks that are here already wait for these.
    if (Status closed = plane_.accepting(); !closed.ok() && plane_.groups->find(id->key) == nullptr) {
      return fail(std::move(closed));
    }
    return plane_.groups->open(*id, group);
  }

  void answer(JoinResults::Builder out, const Mapped& mapped, const std::shared_ptr<LocalGroup>& group,
              std::uint32_t rank) {
    out.setMember(kj::heap<MemberServer>(plane_, session_, group, rank));
    out.setEpoch(mapped.epoch);
    out.setName(short_name(group->id().key));
    auto list = out.initDomainOfRank(static_cast<capnp::uint>(mapped.domain_of_rank.size()));
    for (capnp::uint i = 0; i < list.size(); ++i) list.set(i, mapped.domain_of_rank[i]);
    out.setProxy(group->proxy_index());
  }

  void give_up(JoinResults::Builder out, const std::shared_ptr<LocalGroup>& group, std::uint32_t rank,
               std::uint64_t limit) {
    std::string text = "rank " + std::to_string(rank) + " waited " + std::to_string(limit) + " ms for the group";
    if (!group->missing().empty())
      text +=
          "; not there: rank" + std::string(group->missing().size() == 1 ? " " : "s ") + rank_list(group->missing());
    text += plane_.turned_away->since(group->since());
    ipc::fill(out.initError(), {Code::timeout, text});
    forget(group, rank);
  }

  void forget(const std::shared_ptr<LocalGroup>& group, std::uint32_t rank) {
    std::erase_if(session_->memberships, [&](const auto& m) { return m.first == group && m.second == rank; });
    group->withdraw(rank);
  }

  ControlPlane& plane_;
  std::shared_ptr<Session> session_;
};

}  // namespace

schema::Session::Client make_session_server(ControlPlane& plane, std::shared_ptr<Session> session) {
  return kj::heap<SessionServer>(plane, std::move(session));
}

}  // namespace railhead::daemon
