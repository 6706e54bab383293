#include "daemon/config/key_table.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <utility>

#include "ipc/layout/daemon_page.hpp"

namespace railhead::config {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::array<std::string_view, 5> kLevels = {"trace", "debug", "info", "warning", "error"};
constexpr std::array<std::string_view, 3> kLogTargets = {"auto", "journal", "stderr"};
constexpr std::array<std::string_view, 2> kEndpoints = {"msg", "rdm"};

constexpr Key kKeys[] = {
    {"socket", [](Config& c) -> Target { return &c.socket; }, "path", "UNIX socket on which clients are served."},
    {"socket_mode", [](Config& c) -> Target { return &c.socket_mode; }, "octal",
     "Mode of the socket: who may connect."},
    {"socket_group", [](Config& c) -> Target { return &c.socket_group; }, "",
     "Group that owns the socket; empty leaves the daemon's own."},
    {"allowed_uids", [](Config& c) -> Target { return &c.allowed_uids; }, "user ids",
     "Users that may open sessions; empty admits everyone who can connect. Root and the daemon's own user always may."},
    {"host_id_file", [](Config& c) -> Target { return &c.host_id_file; }, "path",
     "File that keeps this host's identity over restarts; empty makes a new one each start."},
    {"slow_after_s", [](Config& c) -> Target { return &c.slow_after_s; }, "s",
     "An operation that waits longer is logged with whom it waits for.", 1, kDay},
    {"join_log_s", [](Config& c) -> Target { return &c.join_log_s; }, "s",
     "While a group forms, the missing ranks are logged this often.", 1, kDay},
    {"join_timeout_s", [](Config& c) -> Target { return &c.join_timeout_s; }, "s",
     "A group whose ranks have not joined so long after the first, or not attached so long after the last, is "
     "given up; 0 waits for ever.",
     0, kDay},
    {"drain_s", [](Config& c) -> Target { return &c.drain_s; }, "s",
     "On SIGTERM running groups get this long to close before they are aborted.", 0, kDay},
    {"log.level", [](Config& c) -> Target { return &c.log.level; }, "", "Least severe messages that are logged.", 0, 0,
     kLevels},
    {"log.target", [](Config& c) -> Target { return &c.log.target; }, "",
     "Where the log goes; auto takes the journal when systemd has connected standard error to it.", 0, 0, kLogTargets},
    {"mesh.bind", [](Config& c) -> Target { return &c.mesh.bind; }, "tcp://HOST:PORT",
     "Address for other daemons; port 0 takes a free one. Beyond loopback it needs mesh.key_file."},
    {"mesh.advertise", [](Config& c) -> Target { return &c.mesh.advertise; }, "tcp://HOST:PORT",
     "Address that other daemons dial, where it differs from mesh.bind; port 0 is the bound port. Better an "
     "address than a name."},
    {"mesh.key_file", [](Config& c) -> Target { return &c.mesh.key_file; }, "path",
     "Keys of the cluster, the same file on every host, made by 'epctl keygen FILE'."},
    {"mesh.insecure",
     [](Config& c) -> Target { return &c.mesh.insecure; },
     "",
     "Serve other hosts without keys: everyone who can reach the address is trusted.",
     0,
     0,
     {},
     "--insecure"},
    {"mesh.heartbeat_ms", [](Config& c) -> Target { return &c.mesh.heartbeat_ms; }, "ms",
     "Other daemons are pinged this often.", 10, 600'000},
    {"mesh.timeout_ms", [](Config& c) -> Target { return &c.mesh.timeout_ms; }, "ms",
     "A daemon that is silent for so long is lost; at least two heartbeats.", 20, 3'600'000},
    {"fabric.provider", [](Config& c) -> Target { return &c.fabric.provider; }, "", "libfabric provider of the rails."},
    {"fabric.endpoint", [](Config& c) -> Target { return &c.fabric.endpoint; }, "",
     "Endpoint type: msg is connected, rdm is not.", 0, 0, kEndpoints},
    {"fabric.bind", [](Config& c) -> Target { return &c.fabric.bind; }, "address or interface",
     "Where the rails listen; empty takes the address of mesh.bind."},
    {"fabric.fault", [](Config& c) -> Target { return &c.fabric.fault; }, "",
     "Faults to inject, for tests: 'seed=1,reorder=8,delay=16'."},
    {"proxy.threads", [](Config& c) -> Target { return &c.proxy.threads; }, "",
     "Threads that move data between rings and the fabric; a group uses those that all its hosts have.", 1,
     ipc::kMaxProxies},
    {"proxy.cpus", [](Config& c) -> Target { return &c.proxy.cpus; }, "cpu numbers",
     "Cores for the proxy threads, as '0-3,8', out of those that epd may run on; empty binds them near their NIC."},
    {"proxy.spin_us", [](Config& c) -> Target { return &c.proxy.spin_us; }, "us",
     "A proxy without work polls this long before it sleeps.", 0, 1'000'000},
    {"limits.sessions", [](Config& c) -> Target { return &c.limits.sessions; }, "", "Sessions at one time.", 1, 65'536},
    {"limits.groups", [](Config& c) -> Target { return &c.limits.groups; }, "", "Groups at one time.", 1, 65'536},
    {"limits.ranks", [](Config& c) -> Target { return &c.limits.ranks; }, "", "Ranks of one group.", 1, 65'536},
    {"limits.control_bytes", [](Config& c) -> Target { return &c.limits.control_bytes; }, "bytes",
     "Control memory that all groups together may take.", 1 << 20, std::int64_t{1} << 40},
    {"limits.handles", [](Config& c) -> Target { return &c.limits.handles; }, "", "Live handles of one group.", 1,
     65'536},
    {"private.key", [](Config& c) -> Target { return &c.private_daemon.key; }, "",
     "Internal: names the job whose ranks share a private daemon."},
    {"private.linger_ms", [](Config& c) -> Target { return &c.private_daemon.linger_ms; }, "ms",
     "Internal: a private daemon ends this long after its last session.", 0, kDay * 1000},
};

// Levenshtein distance: how many letters differ.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

// Further away than this, a name is no slip of the other.
std::size_t too_far(std::string_view name) {
  return std::max<std::size_t>(name.size() / 3, 2) + 1;
}

constexpr std::size_t kLongestName = 64;

// Where this process may run; empty when the kernel does not say.
std::vector<std::int64_t> allowed_cpus() {
  std::vector<std::int64_t> out;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return out;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) out.push_back(cpu);
  }
  return out;
}

// The kernel binds to what is left of a set: a wrong number would show only as a proxy that is slow.
Status check_cpus(const Config& config) {
  Config allowed;
  allowed.proxy.cpus = allowed_cpus();
  const std::vector<std::int64_t>& may = allowed.proxy.cpus;
  Config refused;
  std::set_difference(config.proxy.cpus.begin(), config.proxy.cpus.end(), may.begin(), may.end(),
                      std::back_inserter(refused.proxy.cpus));
  if (may.empty() || refused.proxy.cpus.empty()) return {};
  const Key& key = *find_key("proxy.cpus");
  return {Code::invalid_argument, "proxy.cpus names " + value_text(key, refused) + ", but this process may run on " +
                                      value_text(key, allowed) + " only"};
}

}  // namespace

std::span<const Key> keys() {
  return kKeys;
}

const Key* find_key(std::string_view name) {
  const auto found = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& key) { return key.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

std::string_view nearest_key(std::string_view name) {
  if (name.size() > kLongestName) return {};
  std::string_view best;
  std::size_t least = too_far(name);
  for (const Key& key : kKeys) {
    // "heartbeat_ms" means "mesh.heartbeat_ms".
    const bool tail = key.name.size() > name.size() && name.size() > 2 && key.name.ends_with("." + std::string(name));
    const std::size_t far = tail ? 0 : distance(name, key.name);
    if (far >= least) continue;
    least = far;
    best = key.name;
  }
  return best;
}

std::string_view table_of(const Key& key) {
  const std::size_t dot = key.name.find('.');
  return dot == std::string_view::npos ? std::string_view() : key.name.substr(0, dot);
}

bool is_table(std::string_view name) {
  return !name.empty() &&
         std::any_of(std::begin(kKeys), std::end(kKeys), [&](const Key& key) { return table_of(key) == name; });
}

std::string_view nearest_table(std::string_view name) {
  if (name.size() > kLongestName) return {};
  std::string_view best;
  std::size_t least = too_far(name);
  for (const Key& key : kKeys) {
    const std::size_t far = table_of(key).empty() ? least : distance(name, table_of(key));
    if (far >= least) continue;
    least = far;
    best = table_of(key);
  }
  return best;
}

Status check_together(const Config& config) {
  if (config.mesh.timeout_ms < 2 * config.mesh.heartbeat_ms) {
    return {Code::invalid_argument, "mesh.timeout_ms is " + std::to_string(config.mesh.timeout_ms) +
                                        " ms: it must be at least twice mesh.heartbeat_ms, " +
                                        std::to_string(config.mesh.heartbeat_ms) + " ms"};
  }
  return check_cpus(config);
}

}  // namespace railhead::config
