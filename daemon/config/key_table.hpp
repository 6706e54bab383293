// The one table of configuration keys. Files, flags, --help, --print-config and the docs page all come from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/config/config.hpp"
#include "ipc/status.hpp"

namespace railhead::config {

// Where a key's value lives; the alternative is the key's type.
using Target = std::variant<std::string*, std::int64_t*, bool*, FileMode*, std::vector<std::int64_t>*>;

struct Key {
  std::string_view name;  // dotted: "mesh.bind"; also the flag --mesh.bind
  Target (*target)(Config&);
  std::string_view unit;  // empty: none
  std::string_view help;
  std::int64_t min = 0;
  std::int64_t max = 0;                            // integers only
  std::span<const std::string_view> choices = {};  // strings only; empty: any
  std::string_view alias = {};                     // a second flag, "--insecure"
};

std::span<const Key> keys();

// Null when there is no such key.
const Key* find_key(std::string_view name);
// The known name that `name` most likely means; empty when none is near.
std::string_view nearest_key(std::string_view name);

// "mesh" of "mesh.bind"; empty at the top.
std::string_view table_of(const Key& key);
bool is_table(std::string_view name);
std::string_view nearest_table(std::string_view name);

// "string", "integer", "true/false", "octal mode", "number list", or the choices: "a | b".
std::string type_text(const Key& key);

// A value as text: what flags take and TOML shows without quotes. Lists: "0-3,8".
std::string value_text(const Key& key, const Config& config);
// The same as a TOML value.
std::string value_toml(const Key& key, const Config& config);

// Sets the key from text. The error says value, type and limits, without naming where it came from.
Status set_value(const Key& key, Config& config, std::string_view text);

// Rules between keys, and between them and this machine.
Status check_together(const Config& config);

}  // namespace railhead::config
