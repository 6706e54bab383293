#include "daemon/config/settings.hpp"

#include <fcntl.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "daemon/config/key_table.hpp"
#include "daemon/read_text.hpp"
#include "ipc/fd.hpp"

namespace railhead::config {
namespace {

namespace fs = std::filesystem;

bool all_integers(const toml::node& node) {
  const toml::array* array = node.as_array();
  return array != nullptr &&
         std::all_of(array->begin(), array->end(), [](const toml::node& item) { return item.is_integer(); });
}

// The text that a flag would take.
std::string list_text(const toml::array& integers) {
  std::string text;
  for (const toml::node& item : integers) {
    text += (text.empty() ? "" : ",") + std::to_string(item.as_integer()->get());
  }
  return text;
}

class Loader {
 public:
  Loader() { settings_.origins.assign(keys().size(), "default"); }

  void file(const fs::path& path) {
    const ipc::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto text = fd ? daemon::read_text(fd.get(), "cannot be read") : fail(system_status("cannot be read", errno));
    if (!text) return problem(path.string(), text.error().message());
    try {
      const toml::table table = toml::parse(*text, path.string());
      walk(table, "", path.string());
    } catch (const toml::parse_error& error) {
      problem(path.string() + ":" + std::to_string(error.source().begin.line), std::string(error.description()));
    }
  }

  void set(std::string_view name, std::string_view text, const std::string& origin) {
    const Key* key = find_key(name);
    if (key == nullptr) return unknown("key", name, nearest_key(name), origin);
    if (const Status status = set_value(*key, settings_.config, text); !status.ok()) {
      return problem(origin, status.message());
    }
    settings_.origins[static_cast<std::size_t>(key - keys().data())] = origin;
  }

  void problem(const std::string& origin, const std::string& text) { problems_.push_back(origin + ": " + text); }

  Result<Settings> finish() {
    if (const Status status = check_together(settings_.config); problems_.empty() && !status.ok()) {
      problems_.push_back(status.message());
    }
    if (problems_.empty()) return std::move(settings_);
    std::string text = std::to_string(problems_.size()) + " error(s) in the configuration";
    for (const std::string& line : problems_) text += "\n  " + line;
    return fail(Code::invalid_argument, std::move(text));
  }

 private:
  void walk(const toml::table& table, const std::string& prefix, const std::string& path) {
    for (const auto& [name, node] : table) {
      const std::string full = prefix + std::string(name.str());
      const std::string origin = path + ":" + std::to_string(node.source().begin.line);
      if (const Key* key = find_key(full); key != nullptr) {
        value(*key, node, origin);
      } else if (is_table(full)) {
        section(full, node, path, origin);
      } else if (node.is_table()) {
        unknown("table", full, nearest_table(full), origin);
      } else {
        unknown("key", full, nearest_key(full), origin);
      }
    }
  }

  void section(const std::string& name, const toml::node& node, const std::string& path, const std::string& origin) {
    if (node.is_table()) return walk(*node.as_table(), name + ".", path);
    problem(origin, name + " is a table: write [" + name + "] and its keys below");
  }

  void value(const Key& key, const toml::node& node, const std::string& origin) {
    Config scratch;
    const Target target = key.target(scratch);
    const bool wants_integer = std::holds_alternative<std::int64_t*>(target);
    const bool wants_bool = std::holds_alternative<bool*>(target);
    const bool wants_list = std::holds_alternative<std::vector<std::int64_t>*>(target);
    if (wants_list && all_integers(node)) return set(key.name, list_text(*node.as_array()), origin);
    if (wants_integer && node.is_integer()) return set(key.name, std::to_string(node.as_integer()->get()), origin);
    if (wants_bool && node.is_boolean()) return set(key.name, node.as_boolean()->get() ? "true" : "false", origin);
    if (!wants_integer && !wants_bool && node.is_string()) return set(key.name, node.as_string()->get(), origin);
    const std::string wanted = wants_integer ? "an integer"
                               : wants_bool  ? "true or false"
                               : wants_list  ? "an array of integers, or a string in quotes"
                                             : "a string in quotes";
    problem(origin, std::string(key.name) + " has the wrong type: expected " + wanted + " (" + type_text(key) + ")");
  }

  void unknown(const std::string& what, std::string_view name, std::string_view near, const std::string& origin) {
    problem(origin, "unknown " + what + " '" + std::string(name) + "'" +
                        (near.empty() ? "; --print-config lists all" : ": did you mean '" + std::string(near) + "'?"));
  }

  Settings settings_;
  std::vector<std::string> problems_;
};

void load_file(Loader& loader, const Sources& sources) {
  std::error_code error;
  if (fs::exists(sources.file, error)) {
    loader.file(sources.file);
  } else if (sources.file_required || (error && error != std::errc::no_such_file_or_directory)) {
    loader.problem(sources.file, error ? error.message() : "no such file");
  }
}

fs::path drop_in_folder(const Sources& sources) {
  if (!sources.folder.empty()) return sources.folder;
  return fs::path(sources.file).replace_extension(".d");
}

void load_folder(Loader& loader, const fs::path& folder, bool required) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".toml") files.push_back(it->path());
  }
  if (error && (required || error != std::errc::no_such_file_or_directory)) {
    loader.problem(folder.string(), error.message());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) loader.file(file);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

Result<Settings> load_settings(const Sources& sources) {
  Loader loader;
  const bool none = sources.file == "none";
  if (!none) load_file(loader, sources);
  if (!none || !sources.folder.empty()) load_folder(loader, drop_in_folder(sources), !sources.folder.empty());
  for (const auto& [name, text] : sources.flags) loader.set(name, text, "flag");
  return loader.finish();
}

std::string print_toml(const Settings& settings) {
  std::string text;
  std::string_view table;
  for (std::size_t i = 0; i < keys().size(); ++i) {
    const Key& key = keys()[i];
    if (table_of(key) != table) text += "\n";
    table = table_of(key);
    text += std::string(key.name) + " = " + value_toml(key, settings.config) + "  # " + settings.origins[i] + "\n";
  }
  return text;
}

std::string print_markdown() {
  const Config defaults;
  std::string text = "| key | type | default | unit | meaning |\n|---|---|---|---|---|\n";
  for (const Key& key : keys()) {
    text += "| `" + std::string(key.name) + "` | " + escaped(type_text(key)) + " | `" + value_toml(key, defaults) +
            "` | " + std::string(key.unit) + " | " + escaped(key.help) + " |\n";
  }
  return text;
}

}  // namespace railhead::config
