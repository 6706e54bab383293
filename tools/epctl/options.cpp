#include "tools/epctl/options.hpp"

#include <cstdio>
#include <utility>

#include "tools/epctl/table.hpp"

namespace railhead::epctl {
namespace {

// A daemon that cannot be talked to, as against one that says no.
bool is_unreachable(Code code) {
  return code == Code::unavailable || code == Code::timeout || code == Code::daemon_lost || code == Code::system;
}

}  // namespace

CLI::App* add_command(CLI::App& app, Options& options, const std::string& name, const std::string& description,
                      const std::string& exit_codes, std::function<int()> run) {
  CLI::App* const command = app.add_subcommand(name, description);
  command->add_option("--timeout", options.timeout_s, "Give up after this long")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  command->add_flag("--json", options.json, "Print JSON, for scripts: keys are stable");
  command->footer("Exit codes: " + exit_codes);
  command->callback([&options, run = std::move(run)] { options.exit_code = run(); });
  return command;
}

CLI::App* add_daemon_command(CLI::App& app, Options& options, const std::string& name, const std::string& description,
                             const std::string& exit_codes, std::function<int()> run) {
  CLI::App* const command = add_command(app, options, name, description, exit_codes, std::move(run));
  command
      ->add_option("--socket", options.socket,
                   "Socket of the daemon [RAILHEAD_DAEMON, else the system daemon, else your only private one]")
      ->type_name("PATH");
  return command;
}

void print_json(const Json& json) {
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

int print_failure(const Options& options, const Status& reason) {
  if (options.json) {
    print_json({{"error", {{"code", code_name(reason.code())}, {"message", reason.message()}}}});
  } else {
    std::fprintf(stderr, "epctl: %s\n", printable(reason.message()).c_str());
  }
  return is_unreachable(reason.code()) ? kUnreachable : kRefused;
}

}  // namespace railhead::epctl
