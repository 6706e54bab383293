// What every command takes, and how every command ends.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "ipc/status.hpp"

namespace railhead::epctl {

using Json = nlohmann::ordered_json;

// Exit codes; --help says the same.
inline constexpr int kGood = 0;
inline constexpr int kRefused = 1;      // the daemon answered and refused; for `status`: DEGRADED
inline constexpr int kUnreachable = 2;  // no answer from a daemon; for `status`: FAILED
inline constexpr int kBadUsage = 64;    // EX_USAGE: never mistaken for a state of the daemon

struct Options {
  std::string socket;    // --socket; empty = find_daemon() looks
  double timeout_s = 5;  // --timeout, for everything a command does
  bool json = false;
  int exit_code = kGood;  // set by the command that ran
};

// A command with --timeout and --json; `run` returns the exit code.
CLI::App* add_command(CLI::App& app, Options& options, const std::string& name, const std::string& description,
                      const std::string& exit_codes, std::function<int()> run);
// The same with --socket, for those that talk to a daemon.
CLI::App* add_daemon_command(CLI::App& app, Options& options, const std::string& name, const std::string& description,
                             const std::string& exit_codes, std::function<int()> run);

// To standard output: JSON, indented; text that came from processes is made valid UTF-8.
void print_json(const Json& json);
// The failed command's message: a JSON object on standard output with --json, else a line on standard error. Returns
// the exit code that belongs to it.
int print_failure(const Options& options, const Status& reason);

}  // namespace railhead::epctl
