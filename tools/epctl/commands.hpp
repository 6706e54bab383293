// The commands of epctl; each adds itself to the command line.
#pragma once

#include "tools/epctl/options.hpp"

namespace railhead::epctl {

void add_status(CLI::App& app, Options& options);
void add_why(CLI::App& app, Options& options);
void add_list(CLI::App& app, Options& options);
void add_evict(CLI::App& app, Options& options);
void add_keygen(CLI::App& app, Options& options);
void add_version(CLI::App& app, Options& options);

}  // namespace railhead::epctl
