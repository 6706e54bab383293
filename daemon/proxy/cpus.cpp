#include "daemon/proxy/cpus.hpp"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

namespace railhead::daemon::rail {
namespace {

Result<int> parse_cpu(std::string_view text, std::string_view whole) {
  int cpu = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc{} || end != text.data() + text.size() || cpu < 0 || cpu >= CPU_SETSIZE) {
    return fail(Code::invalid_argument, "'" + std::string(text) + "' in the cpu list '" + std::string(whole) +
                                            "' is no processor number from 0 to " + std::to_string(CPU_SETSIZE - 1));
  }
  return cpu;
}

Result<void> add_range(std::string_view part, std::string_view whole, std::vector<int>& out) {
  const std::size_t dash = part.find('-');
  const auto first = parse_cpu(part.substr(0, dash), whole);
  if (!first) return fail(first.error());
  const auto last = dash == std::string_view::npos ? first : parse_cpu(part.substr(dash + 1), whole);
  if (!last) return fail(last.error());
  if (*last < *first) {
    return fail(Code::invalid_argument,
                "'" + std::string(part) + "' in the cpu list '" + std::string(whole) + "' runs backwards");
  }
  for (int cpu = *first; cpu <= *last; ++cpu) out.push_back(cpu);
  return {};
}

Result<std::string> bind_to(std::string_view list) {
  const auto cpus = parse_cpu_list(list);
  if (!cpus) return fail(cpus.error());
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : *cpus) CPU_SET(cpu, &set);
  if (const int error = ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set); error != 0) {
    return fail(system_status("binding a proxy to the processors " + std::string(list), error));
  }
  return "bound to processors " + std::string(list);
}

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};

// Loading the topology takes 20 ms and more: not for lo, veth and their kind, which have no place in it.
bool is_hardware(const std::string& device) {
  return !device.empty() && (::access(("/sys/class/net/" + device + "/device").c_str(), F_OK) == 0 ||
                             ::access(("/sys/class/infiniband/" + device).c_str(), F_OK) == 0);
}

std::string bind_near(const std::string& device) {
  std::string unbound = "not bound: no device '" + device + "' in the topology";
  if (!is_hardware(device)) return unbound;
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return unbound;
  const std::unique_ptr<hwloc_topology, DestroyTopology> topology(raw);
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(raw) != 0) return unbound;
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_osdev(raw, object)) != nullptr;) {
    if (object->name == nullptr || device != object->name) continue;
    const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(raw, object);
    if (hwloc_set_cpubind(raw, place->cpuset, HWLOC_CPUBIND_THREAD) != 0) {
      return "not bound: " + system_status("binding a proxy near " + device, errno).message();
    }
    return "bound near " + device;
  }
  return unbound;
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (auto added = add_range(text.substr(at, comma - at), text, out); !added) return fail(added.error());
    at = comma + 1;
  }
  return out;
}

Result<std::string> bind_thread(std::string_view cpu_list, const std::string& device) {
  if (!cpu_list.empty()) return bind_to(cpu_list);
  return bind_near(device);
}

}  // namespace railhead::daemon::rail
