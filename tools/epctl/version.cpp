// epctl version: of this program and of the daemon it would talk to.
#include "ipc/version.hpp"

#include <cstdio>

#include "tools/epctl/admin_call.hpp"
#include "tools/epctl/commands.hpp"
#include "tools/epctl/table.hpp"

namespace railhead::epctl {
namespace {

int run(const Options& options) {
  const std::string own(ipc::build_string());
  const auto status = snapshot(options, "status");
  if (options.json) {
    Json json{{"epctl", {{"version", own}, {"protocol", ipc::kProtocolVersion}}}, {"daemon", nullptr}};
    if (status) {
      json["daemon"] = {{"version", status->value("version", "")},
                        {"protocol", status->value("protocol", 0U)},
                        {"socket", status->value("socket", "")}};
    } else {
      json["daemon_error"] = {{"code", code_name(status.error().code())}, {"message", status.error().message()}};
    }
    print_json(json);
    return kGood;
  }
  std::printf("epctl   %s, protocol %u\n", own.c_str(), ipc::kProtocolVersion);
  if (status) {
    std::printf("daemon  %s, protocol %u\n", status->value("version", "").c_str(), status->value("protocol", 0U));
  } else {
    std::printf("daemon  not known: %s\n", printable(status.error().message()).c_str());
  }
  return kGood;
}

}  // namespace

void add_version(CLI::App& app, Options& options) {
  add_daemon_command(app, options, "version", "Versions of epctl and of the daemon",
                     "0, also when no daemon answers; 64 bad usage.", [&options] { return run(options); });
}

}  // namespace railhead::epctl
