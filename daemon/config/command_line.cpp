#include "daemon/config/command_line.hpp"

#include <CLI/CLI.hpp>
#include <deque>

#include "daemon/config/key_table.hpp"

namespace railhead::config {
namespace {

constexpr int kBadConfig = 1;
constexpr int kBadUsage = 2;

struct Options {
  std::string file;
  std::string folder;
  std::string print;
  std::string keygen;
  bool check = false;
  std::deque<std::string> values;  // one per key: CLI11 writes there, and a deque does not move them
  std::deque<CLI::Option*> flags;
};

std::string flag_help(const Key& key) {
  const Config defaults;
  std::string text = std::string(key.help) + " [" + type_text(key);
  if (!key.unit.empty()) text += ", " + std::string(key.unit);
  const std::string value = value_text(key, defaults);
  return text + ", default: " + (value.empty() ? "empty" : value) + "]";
}

void add_keys(CLI::App& app, Options& options) {
  for (const Key& key : keys()) {
    Config scratch;
    std::string name = "--" + std::string(key.name);
    if (!key.alias.empty()) name += "," + std::string(key.alias);
    std::string& value = options.values.emplace_back();
    const bool is_switch = std::holds_alternative<bool*>(key.target(scratch));
    CLI::Option* option =
        is_switch ? app.add_flag(name, value, flag_help(key)) : app.add_option(name, value, flag_help(key));
    if (!is_switch) option->expected(1)->take_last()->type_name("VALUE");
    option->group(key.name.starts_with("private.") ? "Internal" : "Configuration keys");
    options.flags.push_back(option);
  }
}

void add_questions(CLI::App& app, Options& options, const std::string& version) {
  app.set_version_flag("--version", version, "Print the version and exit");
  // Empty, it would read as not given: a variable of a script that is not set.
  const CLI::Validator named([](const std::string& name) { return std::string(name.empty() ? "names nothing" : ""); },
                             "");
  app.add_option("--config", options.file,
                 std::string("Configuration file; none: no file, and no folder but that of --config-dir [") +
                     kDefaultFile + "]")
      ->check(named)
      ->type_name("FILE");
  app.add_option("--config-dir", options.folder,
                 "Folder with further *.toml, read in lexical order [FILE with .d for .toml]")
      ->check(named)
      ->type_name("DIR");
  app.add_option("--print-config", options.print,
                 "Print every value with its origin, or the key table as markdown, and exit")
      ->expected(0, 1)
      ->default_str("toml")
      ->check(CLI::IsMember({"toml", "markdown"}))
      ->type_name("[toml|markdown]");
  app.add_flag("--check-config", options.check, "Check the configuration and exit: 0 good, 1 bad");
  app.add_option("--keygen", options.keygen, "Write new mesh keys to FILE and exit")->type_name("FILE");
}

Sources sources_of(const Options& options) {
  Sources sources;
  if (!options.file.empty()) sources.file = options.file;
  sources.file_required = !options.file.empty();
  sources.folder = options.folder;
  for (std::size_t i = 0; i < keys().size(); ++i) {
    if (options.flags[i]->count() > 0) sources.flags.emplace_back(keys()[i].name, options.values[i]);
  }
  return sources;
}

CommandLine answer(int exit_code, std::string output) {
  CommandLine result;
  result.exit_code = exit_code;
  result.output = std::move(output);
  return result;
}

CommandLine decide(const Options& options, bool print) {
  if (!options.keygen.empty()) {
    CommandLine result;
    result.action = Action::keygen;
    result.key_path = options.keygen;
    return result;
  }
  if (print && options.print == "markdown") return answer(0, print_markdown());
  auto settings = load_settings(sources_of(options));
  if (!settings) return answer(kBadConfig, settings.error().message() + "\n");
  if (print && !options.check) return answer(0, print_toml(*settings));
  CommandLine result;
  result.action = options.check ? Action::check : Action::run;
  result.settings = std::move(*settings);
  return result;
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv, const std::string& version) {
  CLI::App app("epd: the Railhead daemon of this host", "epd");
  Options options;
  add_questions(app, options, version);
  add_keys(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const bool bad = app.exit(error, out, err) != 0;
    return answer(bad ? kBadUsage : 0, bad ? err.str() : out.str());
  }
  return decide(options, app.count("--print-config") > 0);
}

}  // namespace railhead::config
