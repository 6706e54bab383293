// The command line of epd: every key as a flag, and the questions that are answered without starting.
#pragma once

#include <string>

#include "daemon/config/settings.hpp"

namespace railhead::config {

enum class Action {
  run,     // start with `settings`
  check,   // say whether a start would take `settings`
  keygen,  // make mesh keys at `key_path`
  done,    // answered: print, exit with exit_code
};

struct CommandLine {
  Action action = Action::done;
  Settings settings;
  std::string key_path;
  int exit_code = 0;   // of done
  std::string output;  // of done; to standard output when exit_code is 0, else to standard error
};

// --help, --version, --print-config[=toml|markdown], --check-config, --keygen FILE, --config FILE (none: no file),
// --config-dir DIR, and --KEY VALUE for each key (true/false keys also bare). Exit codes: 0, 1 bad configuration,
// 2 bad usage.
CommandLine parse_command_line(int argc, const char* const* argv, const std::string& version);

}  // namespace railhead::config
