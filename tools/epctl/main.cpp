// epctl: what the daemon of this host does, and why something waits.
#include <cstdio>
#include <exception>

#include "ipc/version.hpp"
#include "tools/epctl/commands.hpp"

int main(int argc, char** argv) try {
  using namespace railhead;
  CLI::App app("epctl: what the Railhead daemon of this host does, and why something waits", "epctl");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(ipc::build_string()));
  app.footer(
      "Exit codes: 0 done; 1 refused (status: DEGRADED, REFUSED); 2 no daemon answers (status: FAILED); 64 bad usage.\n"
      "'epctl COMMAND --help' has the options of a command. Only root and the daemon's own user may ask.");
  epctl::Options options;
  epctl::add_status(app, options);
  epctl::add_why(app, options);
  epctl::add_list(app, options);
  epctl::add_evict(app, options);
  epctl::add_keygen(app, options);
  epctl::add_version(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? epctl::kGood : epctl::kBadUsage;
  }
  if (std::fflush(stdout) != 0) {
    std::perror("epctl: standard output");
    return epctl::kRefused;
  }
  return options.exit_code;
} catch (const std::exception& error) {
  std::fprintf(stderr, "epctl: %s\n", error.what());
  return railhead::epctl::kRefused;
}
