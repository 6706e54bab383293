// Options that every peer program has.
#pragma once

#include <CLI/CLI.hpp>

namespace railhead::peers {

inline void add_common_options(CLI::App& app, unsigned& timeout_s, bool& json) {
  app.add_option("--timeout", timeout_s, "Seconds until the program gives up, exit code 3")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  app.add_flag("--json", json, "Print one JSON object");
}

}  // namespace railhead::peers
