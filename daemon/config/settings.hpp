// The effective configuration and where each value came from: defaults, then the file, then the drop-in folder's *.toml
// in lexical order, then flags. The later one wins.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "daemon/config/config.hpp"
#include "ipc/status.hpp"

namespace railhead::config {

inline constexpr const char* kDefaultFile = "/etc/epd/epd.toml";

struct Sources {
  std::string file = kDefaultFile;  // "none": no file, and no folder that is not named
  bool file_required = false;       // named by the operator: its absence is an error
  std::string folder;  // named by the operator: must be there; empty: FILE with .d for .toml, may be absent
  std::vector<std::pair<std::string, std::string>> flags;  // key name, text
};

struct Settings {
  Config config;
  std::vector<std::string> origins;  // one per key, in the table's order: "default", "FILE:LINE", "flag"
};

// All that is wrong is in the error, one line each: unknown keys (with the nearest name), types, ranges, bad TOML.
Result<Settings> load_settings(const Sources& sources);

// Valid TOML that gives the same configuration when read back, each line with its origin.
std::string print_toml(const Settings& settings);
// The table of keys for the documentation: a Markdown page section per group of keys.
std::string print_markdown();

}  // namespace railhead::config
