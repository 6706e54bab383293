// epctl evict: ends a session, or one rank of a group; its group ends with it.
#include <cstdio>
#include <memory>

#include "tools/epctl/admin_call.hpp"
#include "tools/epctl/commands.hpp"
#include "tools/epctl/table.hpp"

namespace railhead::epctl {
namespace {

std::string target_of(const Eviction& eviction) {
  if (eviction.session != 0) return "session " + std::to_string(eviction.session);
  return "rank " + std::to_string(eviction.rank) + " of group " + eviction.group;
}

int run(const Options& options, const Eviction& eviction) {
  if (const auto done = evict(options, eviction); !done) return print_failure(options, done.error());
  if (!options.json) {
    std::printf("evicted %s\n", printable(target_of(eviction)).c_str());
  } else if (eviction.session != 0) {
    print_json({{"evicted", {{"session", eviction.session}}}});
  } else {
    print_json({{"evicted", {{"group", eviction.group}, {"rank", eviction.rank}}}});
  }
  return kGood;
}

}  // namespace

void add_evict(CLI::App& app, Options& options) {
  const auto eviction = std::make_shared<Eviction>();
  CLI::App* const command = add_daemon_command(
      app, options, "evict", "End a session, or one rank of a group: the others are told who and why",
      "0 evicted; 1 refused, such as no such session; 2 no daemon answers; 64 bad usage.", [&options, eviction] {
        if (eviction->session == 0 && eviction->group.empty()) {
          throw CLI::ValidationError("evict", "name --session N, or --group NAME and --rank R");
        }
        return run(options, *eviction);
      });
  auto* const session =
      command->add_option("--session", eviction->session, "Number of the session ('epctl ls sessions')")
          ->check(CLI::Range(1U, UINT32_MAX))
          ->type_name("N");
  auto* const group =
      command->add_option("--group", eviction->group, "Name of the group or how it begins ('epctl ls groups')")
          ->type_name("NAME")
          ->excludes(session);
  auto* const rank = command->add_option("--rank", eviction->rank, "Rank in the group; must be on this host")
                         ->check(CLI::NonNegativeNumber)
                         ->type_name("R")
                         ->needs(group);
  group->needs(rank);
  command->add_option("--reason", eviction->reason, "Shown to every rank of the group and in the log")
      ->type_name("TEXT");
}

}  // namespace railhead::epctl
