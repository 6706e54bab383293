// epctl why: what waits for what, since when.
#include <cstdio>

#include "tools/epctl/admin_call.hpp"
#include "tools/epctl/commands.hpp"
#include "tools/epctl/table.hpp"

namespace railhead::epctl {
namespace {

int run(const Options& options) {
  const auto answer = snapshot(options, "why");
  if (!answer) return print_failure(options, answer.error());
  if (options.json) {
    print_json(*answer);
    return kGood;
  }
  const Json waits = answer->value("waits", Json::array());
  if (waits.empty()) std::printf("nothing waits\n");
  for (const auto& wait : waits) {
    const std::string group = wait.value("group", "");
    const std::string line = (group.empty() ? "" : "group " + group + ": ") + wait.value("text", "");
    std::printf("%s\n", printable(line).c_str());
  }
  return kGood;
}

}  // namespace

void add_why(CLI::App& app, Options& options) {
  add_daemon_command(app, options, "why", "What waits for what, since when",
                     "0 answered, whether or not something waits; 1 refused; 2 no daemon answers; 64 bad usage.",
                     [&options] { return run(options); });
}

}  // namespace railhead::epctl
