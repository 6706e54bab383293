#include <sched.h>

#include "daemon/config/key_table.hpp"
#include "daemon/config/settings.hpp"
#include "tests/unit/config/config_folder.hpp"

namespace railhead::config {
namespace {

class SettingsTest : public ConfigFolder {
 protected:
  Result<Settings> load(std::vector<std::pair<std::string, std::string>> flags = {}) const {
    Sources sources;
    sources.file = path();
    sources.flags = std::move(flags);
    return load_settings(sources);
  }
  std::string error() const {
    const auto settings = load();
    return settings ? "no error" : settings.error().message();
  }
  static std::string origin(const Settings& settings, std::string_view name) {
    return settings.origins[static_cast<std::size_t>(find_key(name) - keys().data())];
  }
};

TEST_F(SettingsTest, WithoutFilesTheDefaultsHold) {
  const auto settings = load();
  ASSERT_TRUE(settings) << settings.error().message();
  for (const Key& key : keys()) {
    EXPECT_EQ(value_text(key, settings->config), value_text(key, Config()));
    EXPECT_EQ(origin(*settings, key.name), "default");
  }
}

TEST_F(SettingsTest, DropInsOverrideTheFileInLexicalOrderAndFlagsWin) {
  write("epd.toml", "slow_after_s = 11\ndrain_s = 11\n[mesh]\nheartbeat_ms = 100\ntimeout_ms = 1000\n");
  write("epd.d/10-site.toml", "drain_s = 12\nmesh.timeout_ms = 1200\njoin_log_s = 12\n");
  write("epd.d/20-host.toml", "mesh.timeout_ms = 1300\n");
  write("epd.d/ignored.conf", "nonsense");
  const auto settings = load({{"join_log_s", "13"}, {"mesh.insecure", "true"}});
  ASSERT_TRUE(settings) << settings.error().message();
  const Config& config = settings->config;
  EXPECT_EQ(config.slow_after_s, 11);
  EXPECT_EQ(config.drain_s, 12);
  EXPECT_EQ(config.mesh.heartbeat_ms, 100);
  EXPECT_EQ(config.mesh.timeout_ms, 1300);
  EXPECT_EQ(config.join_log_s, 13);
  EXPECT_TRUE(config.mesh.insecure);
  EXPECT_EQ(origin(*settings, "slow_after_s"), path() + ":1");
  EXPECT_EQ(origin(*settings, "mesh.heartbeat_ms"), path() + ":4");
  EXPECT_EQ(origin(*settings, "mesh.timeout_ms"), path("epd.d/20-host.toml") + ":1");
  EXPECT_EQ(origin(*settings, "join_log_s"), "flag");
}

TEST_F(SettingsTest, PrintedConfigurationReadsBackTheSame) {
  write("epd.toml",
        "socket = '/tmp/with \"quotes\" and \\ back.sock'\nsocket_mode = '0600'\nallowed_uids = '5,1000-1003'\n"
        "[mesh]\ninsecure = true\nbind = 'tcp://[::1]:0'\n[proxy]\ncpus = '" +
            std::to_string(::sched_getcpu()) + "'\n[log]\nlevel = 'debug'\n");
  const auto first = load();
  ASSERT_TRUE(first) << first.error().message();
  write("epd.toml", print_toml(*first));
  const auto second = load();
  ASSERT_TRUE(second) << second.error().message();
  for (const Key& key : keys()) {
    EXPECT_EQ(value_text(key, second->config), value_text(key, first->config)) << key.name;
    EXPECT_NE(origin(*second, key.name), "default") << key.name << " was not printed";
  }
}

TEST_F(SettingsTest, EveryErrorIsSaidWithItsPlace) {
  write("epd.toml",
        "slow_after_s = 'five'\n"
        "mesh.bnid = 'tcp://127.0.0.1:0'\n"
        "[mesh]\n"
        "heartbeat_ms = 5\n"
        "[log]\n"
        "level = 'loud'\n"
        "[socket]\n"
        "x = 1\n");
  EXPECT_NE(error().find("epd.toml:3"), std::string::npos) << error();  // [mesh] after mesh.bnid: not TOML

  write("epd.toml",
        "slow_after_s = 'five'\n"
        "socket = 5\n"
        "socket_mode = 660\n"
        "[mesh]\n"
        "bnid = 'tcp://127.0.0.1:0'\n"
        "heartbeat_ms = 5\n"
        "insecure = 'yes'\n"
        "[log]\n"
        "level = 'loud'\n"
        "[zebra]\n"
        "x = 1\n");
  const std::string text = error();
  for (const char* part :
       {"8 error(s)", ":1: slow_after_s has the wrong type: expected an integer", ":2: socket has the wrong type",
        ":3: socket_mode has the wrong type: expected a string in quotes (octal mode)",
        ":5: unknown key 'mesh.bnid': did you mean 'mesh.bind'?",
        ":6: mesh.heartbeat_ms is '5': expected an integer of 10..600000 ms", ":7: mesh.insecure has the wrong type",
        ":9: log.level is 'loud': expected one of trace | debug | info | warning | error",
        ":10: unknown table 'zebra'; --print-config lists all"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(SettingsTest, ATableIsToldFromAKey) {
  write("epd.toml", "mesh = 5\nmehs.bind = 'x'\n[limit]\nsessions = 3\n[[log]]\n");
  const std::string text = error();
  for (const char* const part :
       {":1: mesh is a table: write [mesh] and its keys below", ":2: unknown table 'mehs': did you mean 'mesh'?",
        ":3: unknown table 'limit': did you mean 'limits'?", ":5: log is a table"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(SettingsTest, AListIsAnArrayOfIntegersOrText) {
  const std::string cpu = std::to_string(::sched_getcpu());
  write("epd.toml", "allowed_uids = [1001, 1000, 1001]\nproxy.cpus = [" + cpu + "]\n");
  const auto settings = load();
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_EQ(settings->config.allowed_uids, (std::vector<std::int64_t>{1000, 1001}));
  EXPECT_EQ(value_text(*find_key("proxy.cpus"), settings->config), cpu);
  EXPECT_EQ(origin(*settings, "proxy.cpus"), path() + ":2");
  write("epd.toml", "allowed_uids = []\n");
  EXPECT_TRUE(load()) << error();

  for (const char* const bad : {"['a']", "[1.5]", "[[1]]", "[1, 'a']", "1000"}) {
    write("epd.toml", std::string("allowed_uids = ") + bad + "\n");
    EXPECT_NE(error().find(":1: allowed_uids has the wrong type: expected an array of integers, or a string in quotes"),
              std::string::npos)
        << bad << ": " << error();
  }
  write("epd.toml", "allowed_uids = [-1]\nslow_after_s = [5]\n");
  EXPECT_NE(error().find(":1: allowed_uids is '-1': expected a list"), std::string::npos) << error();
  EXPECT_NE(error().find(":2: slow_after_s has the wrong type: expected an integer"), std::string::npos) << error();
}

TEST_F(SettingsTest, RulesBetweenKeysAreChecked) {
  write("epd.toml", "[mesh]\nheartbeat_ms = 5000\n");
  EXPECT_NE(error().find("at least twice mesh.heartbeat_ms"), std::string::npos) << error();
}

TEST_F(SettingsTest, NamedFileMustExistAndNoneReadsNothing) {
  Sources sources;
  sources.file = path("missing.toml");
  EXPECT_TRUE(load_settings(sources));
  sources.file_required = true;
  EXPECT_FALSE(load_settings(sources));
  write("epd.d/10.toml", "drain_s = 3\n");
  sources.file = "none";
  sources.file_required = true;
  EXPECT_EQ(load_settings(sources)->config.drain_s, Config().drain_s);
  sources.file = path("missing.toml");
  sources.file_required = false;
  sources.folder = path("epd.d");
  EXPECT_EQ(load_settings(sources)->config.drain_s, 3);
  sources.folder = path("missing.d");
  EXPECT_FALSE(load_settings(sources));
}

TEST_F(SettingsTest, AFolderThatIsNamedIsReadWithoutAFileToo) {
  write("epd.toml", "drain_s = 2\n");
  write("epd.d/10.toml", "slow_after_s = 3\n");
  Sources sources;
  sources.file = "none";
  sources.file_required = true;
  sources.folder = path("epd.d");
  const auto settings = load_settings(sources);
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_EQ(settings->config.slow_after_s, 3);
  EXPECT_EQ(settings->config.drain_s, Config().drain_s);
  sources.folder = path("missing.d");
  const auto missing = load_settings(sources);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("missing.d: No such file"), std::string::npos) << missing.error().message();
}

TEST_F(SettingsTest, WhatIsNoFileIsRefusedByName) {
  Sources sources;
  sources.file = folder_.string();
  const auto folder = load_settings(sources);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message().find(folder_.string() + ": cannot be read: Is a directory"), std::string::npos)
      << folder.error().message();
  std::filesystem::create_directory(folder_ / "epd.d" / "10.toml");
  EXPECT_NE(error().find("10.toml: cannot be read: Is a directory"), std::string::npos) << error();
}

TEST_F(SettingsTest, MarkdownHasOneRowPerKey) {
  const std::string page = print_markdown();
  EXPECT_EQ(static_cast<std::size_t>(std::count(page.begin(), page.end(), '\n')), keys().size() + 2);
  EXPECT_NE(page.find("| `mesh.timeout_ms` | integer | `2000` | ms |"), std::string::npos) << page;
  EXPECT_NE(page.find("msg \\| rdm"), std::string::npos);
}

}  // namespace
}  // namespace railhead::config
