// epctl status: one word, and why.
#include <cstdio>

#include "tools/epctl/admin_call.hpp"
#include "tools/epctl/commands.hpp"
#include "tools/epctl/table.hpp"

namespace railhead::epctl {
namespace {

// A daemon that cannot be asked has failed, as far as an operator is concerned; of one that refuses nothing is known.
Json failed(const Status& reason) {
  const char* const state = reason.code() == Code::permission ? "REFUSED" : "FAILED";
  return {{"state", state}, {"reasons", {reason.message()}}, {"code", code_name(reason.code())}};
}

int exit_code(const std::string& state) {
  if (state == "READY") return kGood;
  return state == "DEGRADED" || state == "REFUSED" ? kRefused : kUnreachable;
}

void print_details(const Json& status) {
  std::string fabric;
  for (const auto& name : status.value("fabric", Json::array())) {
    fabric += (fabric.empty() ? "" : "; ") + name.get<std::string>();
  }
  std::printf("  version   %s, protocol %u, pid %d, up %s\n", status.value("version", "").c_str(),
              status.value("protocol", 0U), status.value("pid", 0),
              duration_text(status.value("uptime_s", 0.0)).c_str());
  std::printf("  socket    %s\n", printable(status.value("socket", "")).c_str());
  std::printf("  mesh      %s, host %s\n", printable(status.value("mesh", "")).c_str(),
              status.value("host_id", "").c_str());
  std::printf("  fabric    %s\n", printable(fabric).c_str());
  std::printf("  sessions  %u\n", status.value("sessions", 0U));
  std::printf("  groups    %u, %u of them running\n", status.value("groups", 0U), status.value("groups_running", 0U));
}

int run(const Options& options) {
  const auto answer = snapshot(options, "status");
  const Json status = answer ? *answer : failed(answer.error());
  const std::string state = status.value("state", "FAILED");
  if (options.json) {
    print_json(status);
    return exit_code(state);
  }
  std::printf("%s\n", state.c_str());
  for (const auto& reason : status.value("reasons", Json::array())) {
    std::printf("  %s\n", printable(reason.get<std::string>()).c_str());
  }
  if (answer) print_details(status);
  return exit_code(state);
}

}  // namespace

void add_status(CLI::App& app, Options& options) {
  add_daemon_command(app, options, "status", "READY, DEGRADED or FAILED, and why",
                     "0 READY; 1 DEGRADED: works, less well than it should, or drains after SIGTERM; 1 REFUSED: this "
                     "user may not ask; 2 FAILED: does not answer; "
                     "64 bad usage.",
                     [&options] { return run(options); });
}

}  // namespace railhead::epctl
