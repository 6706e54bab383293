#include "ipc/memory_headroom.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace railhead::ipc {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The first number in `text`; nothing for "max" and for garbage.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + start, text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// The number after `key` at the start of a line: "inactive_file 4096", "MemAvailable:   123 kB".
std::optional<std::uint64_t> find_field(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key)) return parse_number(std::string_view(line).substr(key.size()));
  }
  return std::nullopt;
}

struct CgroupFiles {
  std::string_view limit;
  std::string_view usage;
  std::string_view inactive_key;  // in memory.stat
};
constexpr CgroupFiles kV1Files{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
constexpr CgroupFiles kV2Files{"memory.max", "memory.current", "inactive_file "};

// What is left in one cgroup directory; kUnlimited when it has no limit or does not exist.
std::uint64_t cgroup_free(const std::string& directory, const CgroupFiles& files) {
  const auto limit_text = read_file(directory + "/" + std::string(files.limit));
  const auto usage_text = read_file(directory + "/" + std::string(files.usage));
  if (!limit_text || !usage_text) return kUnlimited;
  const auto limit = parse_number(*limit_text);
  const auto usage = parse_number(*usage_text);
  // v1 says "no limit" with a number close to 2^63.
  if (!limit || !usage || *limit > kUnlimited / 4) return kUnlimited;
  const auto stat = read_file(directory + "/memory.stat").value_or("");
  const std::uint64_t droppable = std::min(find_field(stat, files.inactive_key).value_or(0), *usage);
  const std::uint64_t held = *usage - droppable;
  return *limit > held ? *limit - held : 0;
}

// The cgroup and all that enclose it, up to the mount's root: in a container without its own cgroup namespace the path
// of /proc/self/cgroup does not exist below the mount, and the mount's root is the container's cgroup.
void apply_hierarchy(MemoryHeadroom& headroom, const std::string& mount, std::string path, const CgroupFiles& files) {
  for (;;) {
    if (path == "/") path.clear();
    const std::uint64_t left = cgroup_free(mount + path, files);
    if (left < headroom.free_bytes) headroom = {left, "memory cgroup " + (path.empty() ? "/" : path)};
    if (path.empty()) return;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool names_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "memory") return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

Result<MemoryHeadroom> memory_headroom(const MemoryRoots& roots) {
  const auto meminfo = read_file(roots.proc + "/meminfo");
  const auto available_kib = find_field(meminfo.value_or(""), "MemAvailable:");
  if (!available_kib) {
    return fail(Code::system,
                roots.proc + "/meminfo has no MemAvailable: cannot tell how much memory is free; mount proc");
  }
  MemoryHeadroom headroom{*available_kib * 1024, "MemAvailable of the host"};

  // Lines are "id:controllers:path"; v2 has id 0 and no controllers.
  std::istringstream lines(read_file(roots.proc + "/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (controllers.empty()) {
      apply_hierarchy(headroom, roots.cgroup_v2, line.substr(second + 1), kV2Files);
    } else if (names_memory(controllers)) {
      apply_hierarchy(headroom, roots.cgroup_v1, line.substr(second + 1), kV1Files);
    }
  }
  return headroom;
}

}  // namespace railhead::ipc
