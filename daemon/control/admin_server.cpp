#include "daemon/control/admin_server.hpp"

namespace railhead::daemon {
namespace {

class AdminServer final : public schema::Admin::Server {
 public:
  explicit AdminServer(ControlPlane& plane) : plane_(plane) {}

  kj::Promise<void> snapshot(SnapshotContext context) override {
    return plane_.snapshot(context.getParams().getWhat().cStr()).then([context](const std::string& json) mutable {
      if (json.empty()) {
        ipc::fill(context.getResults().initError(),
                  {Code::invalid_argument, std::string("no snapshot of '") + context.getParams().getWhat().cStr() +
                                               "': status, why, sessions, groups, arenas, rings, peers"});
      } else {
        context.getResults().setJson(json);
      }
    });
  }

  kj::Promise<void> evict(EvictContext context) override {
    const auto params = context.getParams();
    const std::string reason = params.getReason().size() == 0
                                   ? "evicted by an operator"
                                   : std::string("evicted by an operator: ") + params.getReason().cStr();
    const Status done = params.getSession() != 0 ? evict_session(params.getSession(), reason)
                                                 : evict_rank(params.getGroup().cStr(), params.getRank(), reason);
    if (!done.ok()) ipc::fill(context.getResults().initError(), done);
    return kj::READY_NOW;
  }

 private:
  Status evict_session(std::uint32_t id, const std::string& reason) {
    const auto session = plane_.sessions->find(id);
    if (session == nullptr) return {Code::invalid_argument, "no session " + std::to_string(id)};
    plane_.log->warning("session evicted: " + reason, {.session = id});
    plane_.sessions->end(*session, reason);
    return {};
  }

  Status evict_rank(const std::string& name, std::int32_t rank, const std::string& reason) {
    auto found = find_group(name);
    if (!found) return found.error();
    LocalGroup& group = **found;
    const std::string whole = short_name(group.id().key);
    if (group.state() == LocalGroup::State::ended) {
      return {Code::invalid_usage, "group " + whole + " has ended already: " + group.end().message()};
    }
    for (const auto& member : group.members()) {
      if (static_cast<std::int32_t>(member.rank) != rank || !member.present) continue;
      plane_.log->warning("rank " + reason, {.group = whole, .rank = member.rank});
      group.lost(member.rank, reason);
      return {};
    }
    return {Code::invalid_argument, "group " + whole + " has no rank " + std::to_string(rank) + " on this host"};
  }

  // By the beginning of its name, as long as that leaves no choice: a slip must not end another job's group.
  Result<std::shared_ptr<LocalGroup>> find_group(const std::string& name) const {
    std::shared_ptr<LocalGroup> found;
    for (const auto& [key, group] : plane_.groups->groups()) {
      if (name.empty() || short_name(key).rfind(name, 0) != 0) continue;
      if (found != nullptr) {
        return fail(Code::invalid_argument, "the names of several groups begin with '" + name +
                                                "': " + short_name(found->id().key) + ", " + short_name(key) +
                                                "; name one of them");
      }
      found = group;
    }
    if (found == nullptr) return fail(Code::invalid_argument, "no group whose name begins with '" + name + "'");
    return found;
  }

  ControlPlane& plane_;
};

}  // namespace

schema::Admin::Client make_admin_server(ControlPlane& plane) {
  return kj::heap<AdminServer>(plane);
}

}  // namespace railhead::daemon
