#include "daemon/control/snapshot.hpp"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "daemon/control/waits.hpp"
#include "ipc/version.hpp"

namespace railhead::daemon {
namespace {

using Json = nlohmann::ordered_json;

double seconds_since(std::chrono::steady_clock::time_point at) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - at).count();
}

std::uint64_t ms_since(std::chrono::steady_clock::time_point at) {
  return static_cast<std::uint64_t>(std::max(0.0, seconds_since(at) * 1000));
}

// null where the daemon sees no pid of the process.
Json visible_pid(const ClientProcess& process) {
  return process.pid != 0 ? Json(process.pid) : Json();
}

Json wait_json(const GroupKey& key, const WaitView& w) {
  Json out{{"group", short_name(key)}, {"rank", w.rank}, {"text", sentence(w)}};
  if (w.op != 0) {
    out["op"] = w.op;
    out["phase"] = w.phase;
    out["waits_for_rank"] = w.peer;
    out["got"] = w.got;
    out["of"] = w.of;
    out["since_ms"] = w.since_ms;
  }
  if (w.refused_op != 0) out["refused_op"] = w.refused_op;
  return out;
}

// What a group is at, and for how long.
Json group_line(const LocalGroup& group, const std::string& text) {
  const std::uint64_t ms = ms_since(group.since());
  return {
      {"group", short_name(group.id().key)}, {"text", text + " (for " + std::to_string(ms) + " ms)"}, {"since_ms", ms}};
}

// What a group that is being made waits for.
Json making(const LocalGroup& group, const TurnedAway& turned_away) {
  const auto& missing = group.missing();
  const bool joining = group.state() == LocalGroup::State::joining;
  if (!missing.empty()) {
    Json line = group_line(group, "waits for " + named_ranks(missing) + (joining ? " to join" : " to attach memory") +
                                      turned_away.since(group.since()));
    line["missing"] = missing;
    return line;
  }
  if (joining) return group_line(group, "waits for its ranks to join; its coordinator has not said yet for which");
  if (group.state() == LocalGroup::State::attaching) {
    return group_line(group, "all ranks joined; the ranks of this host have yet to attach their memory");
  }
  return group_line(group, "waits for the rails to the other hosts, and for their ranks");
}

// An ended group stays until its ranks have closed it or their processes are gone.
Json ended(const LocalGroup& group) {
  std::vector<std::uint32_t> open;
  for (const auto& m : group.members()) {
    if (m.present) open.push_back(m.rank);
  }
  std::string text = "ended: " + group.end().message();
  if (!open.empty())
    text +=
        "; rank" + std::string(open.size() == 1 ? " " : "s ") + rank_list(open) + " of this host did not close it yet";
  Json line = group_line(group, text);
  line["code"] = code_name(group.end().code());
  line["not_closed"] = open;
  return line;
}

// Notice was given, but the process is still there: what it can write to must be kept.
Json unfenced(const Session& session) {
  const std::uint64_t ms = ms_since(session.ended_at);
  return {{"session", session.id},
          {"text", "session " + std::to_string(session.id) + " (" + session.process.name() +
                       ") is over, but its process has not ended, so what it can write to is kept: it was evicted, is "
                       "stopped, or writes a core dump, which can take seconds (for " +
                       std::to_string(ms) + " ms)"},
          {"since_ms", ms}};
}

// Whom a daemon that was told to stop waits for.
Json draining(const Drain& drain, const std::vector<const Session*>& open) {
  constexpr std::size_t kNamed = 8;
  std::string who;
  for (std::size_t i = 0; i < std::min(open.size(), kNamed); ++i) {
    who += (i == 0 ? "" : ", ") + std::to_string(open[i]->id) + " (" + open[i]->process.name() + ")";
  }
  if (open.size() > kNamed) who += " and " + std::to_string(open.size() - kNamed) + " more";
  const std::uint64_t ms = drain.since_ms();
  return {{"text", "the daemon drains: it waits for session" + std::string(open.size() == 1 ? " " : "s ") + who +
                       " to close, at most " + std::to_string(drain.ends_in_ms()) + " ms more (for " +
                       std::to_string(ms) + " ms)"},
          {"since_ms", ms}};
}

Json why(const SnapshotInput& in) {
  Json waits = Json::array();
  if (const auto open = open_sessions(in.sessions); in.drain && !open.empty()) {
    waits.push_back(draining(*in.drain, open));
  }
  for (const auto& [key, group] : in.groups.groups()) {
    for (const WaitView& w : waits_of(*group)) waits.push_back(wait_json(key, w));
    if (group->state() == LocalGroup::State::ended) {
      waits.push_back(ended(*group));
    } else if (group->state() != LocalGroup::State::running) {
      waits.push_back(making(*group, in.turned_away));
    }
  }
  for (const auto& [id, session] : in.sessions.all()) {
    if (session->ended) waits.push_back(unfenced(*session));
  }
  return {{"waits", waits}};
}

// What works less well than it should.
Json reasons_of(const SnapshotInput& in) {
  Json reasons = Json::array();
  if (in.drain) {
    reasons.push_back("draining: " + still_open(in.sessions, in.groups) + ", since it was told to stop " +
                      std::to_string(in.drain->since_ms() / 1000) + " s ago; ends in " +
                      std::to_string((in.drain->ends_in_ms() + 999) / 1000) +
                      " s at the latest, new sessions and groups are refused");
  }
  for (const std::string& trouble : in.troubles) reasons.push_back(trouble);
  for (const auto& [id, session] : in.sessions.all()) {
    if (session->ended || session->unwatched.ok()) continue;
    reasons.push_back(unwatched_text(*session) + ": " + session->unwatched.message());
  }
  for (const auto& [key, group] : in.groups.groups()) {
    for (const WaitView& w : waits_of(*group)) {
      if (w.op != 0 && w.since_ms >= static_cast<std::uint64_t>(in.config.slow_after_s) * 1000) {
        reasons.push_back("group " + short_name(key) + ": " + sentence(w));
      }
    }
    if (group->state() == LocalGroup::State::ended) {
      // The link is forgotten with the peer; what it took along shows until its ranks have seen it.
      if (group->end().code() == Code::peer_lost) {
        reasons.push_back("group " + short_name(key) + " ended: " + group->end().message());
      }
    } else {
      for (const DaemonEntry& daemon : group->daemons()) {
        for (const auto& peer : in.mesh_peers) {
          if (peer.address.host_id == daemon.host && !peer.up) {
            reasons.push_back("group " + short_name(key) + ": the daemon at " + daemon.endpoint + " is not reachable");
          }
        }
      }
    }
  }
  return reasons;
}

// READY or DEGRADED; a daemon that has FAILED does not answer.
Json status(const SnapshotInput& in) {
  const Json reasons = reasons_of(in);
  std::uint32_t running = 0;
  for (const auto& [key, group] : in.groups.groups()) running += group->state() == LocalGroup::State::running ? 1U : 0U;
  Json fabrics = Json::array();
  std::optional<std::uint64_t> injected;
  for (const auto& proxy : in.proxies) {
    fabrics.push_back(proxy.fabric);
    if (proxy.injected_faults) injected = injected.value_or(0) + *proxy.injected_faults;
  }
  Json out{{"state", reasons.empty() ? "READY" : "DEGRADED"},
           {"reasons", reasons},
           {"version", ipc::build_string()},
           {"protocol", ipc::kProtocolVersion},
           {"host_id", in.host.hex()},
           {"pid", ::getpid()},
           {"uptime_s", seconds_since(in.started)},
           {"socket", in.socket},
           {"mesh", in.mesh_endpoint},
           {"fabric", fabrics},
           {"sessions", in.sessions.all().size()},
           {"groups", in.groups.groups().size()},
           {"groups_running", running}};
  if (injected) out["injected_faults"] = *injected;
  if (in.drain) out["draining"] = {{"since_ms", in.drain->since_ms()}, {"ends_in_ms", in.drain->ends_in_ms()}};
  return out;
}

Json sessions(const SnapshotInput& in) {
  Json list = Json::array();
  for (const auto& [id, s] : in.sessions.all()) {
    Json groups = Json::array();
    for (const auto& [group, rank] : s->memberships)
      groups.push_back({{"group", short_name(group->id().key)}, {"rank", rank}});
    list.push_back({{"session", id},
                    {"pid", visible_pid(s->process)},
                    {"own_pid", s->process.own_pid},
                    {"uid", s->uid},
                    {"job", s->job},
                    {"build", s->build},
                    {"age_s", seconds_since(s->since)},
                    {"ended", s->ended},
                    {"groups", groups}});
  }
  return {{"sessions", list}};
}

Json groups(const SnapshotInput& in) {
  Json list = Json::array();
  for (const auto& [key, g] : in.groups.groups()) {
    const ipc::GroupParams& p = g->params();
    Json ranks = Json::array();
    for (const auto& m : g->members()) {
      Json rank{{"rank", m.rank},
                {"session", m.client.session},
                {"pid", visible_pid(m.client.process)},
                {"own_pid", m.client.process.own_pid},
                {"present", m.present}};
      if (g->shape() != nullptr && g->segment().valid())
        rank["completed"] = g->segment().completed(g->shape()->local_of(m.rank));
      ranks.push_back(rank);
    }
    Json entry{{"group", short_name(key)},
               {"state", state_name(g->state())},
               {"ranks", p.ranks},
               {"experts", p.experts},
               {"hidden", p.hidden},
               {"topk", p.topk},
               {"channels", p.channels},
               {"depth", p.depth},
               {"hosts", g->daemons().size()},
               {"local_ranks", ranks}};
    if (g->shape() != nullptr) entry["epoch"] = g->shape()->epoch();
    if (!g->missing().empty()) entry["missing"] = g->missing();
    if (!g->end().ok()) entry["ended"] = {{"code", code_name(g->end().code())}, {"reason", g->end().message()}};
    list.push_back(entry);
  }
  return {{"groups", list}};
}

Json arenas(const SnapshotInput& in) {
  Json list = Json::array();
  for (const auto& [key, g] : in.groups.groups()) {
    for (const auto& m : g->members()) {
      const bool quarantined = g->state() == LocalGroup::State::ended && m.holds_memory;
      list.push_back({{"group", short_name(key)},
                      {"rank", m.rank},
                      {"segments", m.arena_segments},
                      {"bytes", m.arena_bytes},
                      {"rail_bytes", m.rail_bytes},
                      {"quarantined", quarantined}});
    }
  }
  return {{"arenas", list}};
}

Json rings(const SnapshotInput& in) {
  Json list = Json::array();
  for (const auto& proxy : in.proxies) {
    for (const RingReport& r : proxy.rings) {
      list.push_back({{"group", short_name(r.group)},
                      {"rank", r.rank},
                      {"direction", r.tx ? "tx" : "rx"},
                      {"stage", r.dispatch ? "dispatch" : "combine"},
                      {"home", r.home},
                      {"channel", r.channel},
                      {"peer", r.peer},
                      {"head", r.head},
                      {"tail", r.tail}});
    }
  }
  return {{"rings", list}};
}

Json peers(const SnapshotInput& in) {
  Json mesh = Json::array();
  for (const auto& p : in.mesh_peers) {
    mesh.push_back({{"host_id", p.address.host_id.hex()},
                    {"endpoint", p.address.endpoint},
                    {"up", p.up},
                    {"round_trip_us", p.round_trip_us}});
  }
  Json rails = Json::array();
  for (const auto& proxy : in.proxies) {
    for (const PeerReport& p : proxy.peers) {
      rails.push_back({{"host_id", mesh::HostId{p.daemon.host}.hex()},
                       {"endpoint", p.daemon.endpoint},
                       {"state", p.state},
                       {"detail", p.detail},
                       {"tx_bytes", p.tx_bytes},
                       {"tx_writes", p.tx_writes},
                       {"rx_immediates", p.rx_immediates},
                       {"duplicates", p.duplicates},
                       {"strays", p.strays}});
    }
  }
  return {{"mesh", mesh}, {"rails", rails}};
}

}  // namespace

std::string make_snapshot(const std::string& what, const SnapshotInput& in) {
  static const std::map<std::string, std::function<Json(const SnapshotInput&)>> kinds = {
      {"status", status}, {"why", why},     {"sessions", sessions}, {"groups", groups},
      {"arenas", arenas}, {"rings", rings}, {"peers", peers}};
  const auto found = kinds.find(what);
  // Job labels and reasons are bytes of clients: what is not UTF-8 must not keep operators from seeing the rest.
  return found == kinds.end() ? std::string() : found->second(in).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace railhead::daemon
