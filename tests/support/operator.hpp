// What an operator sees of a daemon, and does to it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/epctl/admin_call.hpp"

namespace railhead::test {

using Json = nlohmann::ordered_json;

// Both throw when the daemon does not answer within 10 s, or refuses.
Json snapshot(const std::string& socket, const std::string& what);
void evict(const std::string& socket, const epctl::Eviction& eviction);

// For a test under fabric.fault: fails it when the daemon injects nothing.
void expect_faults(const std::string& socket);

}  // namespace railhead::test
