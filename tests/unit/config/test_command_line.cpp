#include "daemon/config/command_line.hpp"
#include "daemon/config/key_table.hpp"
#include "tests/unit/config/config_folder.hpp"

namespace railhead::config {
namespace {

class CommandLineTest : public ConfigFolder {
 protected:
  static CommandLine parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "epd");
    return parse_command_line(static_cast<int>(arguments.size()), arguments.data(), "epd 1.2.3");
  }
};

TEST_F(CommandLineTest, FlagsWinOverFiles) {
  write("epd.toml", "drain_s = 1\nslow_after_s = 2\n");
  const std::string file = path();
  const CommandLine line =
      parse({"--config", file.c_str(), "--drain_s", "7", "--mesh.bind=tcp://[::1]:0", "--insecure"});
  ASSERT_EQ(line.action, Action::run) << line.output;
  EXPECT_EQ(line.settings.config.drain_s, 7);
  EXPECT_EQ(line.settings.config.slow_after_s, 2);
  EXPECT_EQ(line.settings.config.mesh.bind, "tcp://[::1]:0");
  EXPECT_TRUE(line.settings.config.mesh.insecure);
}

TEST_F(CommandLineTest, SwitchesTakeAValueToo) {
  write("epd.toml", "mesh.insecure = true\n");
  const std::string file = path();
  EXPECT_TRUE(parse({"--config", file.c_str()}).settings.config.mesh.insecure);
  EXPECT_FALSE(parse({"--config", file.c_str(), "--mesh.insecure=false"}).settings.config.mesh.insecure);
  EXPECT_TRUE(parse({"--config", "none", "--mesh.insecure"}).settings.config.mesh.insecure);
}

TEST_F(CommandLineTest, HelpNamesEveryKey) {
  const CommandLine line = parse({"--help"});
  EXPECT_EQ(line.action, Action::done);
  EXPECT_EQ(line.exit_code, 0);
  for (const Key& key : keys()) {
    EXPECT_NE(line.output.find("--" + std::string(key.name)), std::string::npos) << key.name;
  }
}

TEST_F(CommandLineTest, PrintConfigReadsBack) {
  const CommandLine printed = parse({"--config", "none", "--proxy.threads", "9", "--print-config"});
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_NE(printed.output.find("proxy.threads = 9  # flag"), std::string::npos) << printed.output;
  write("epd.toml", printed.output);
  const std::string file = path();
  EXPECT_EQ(parse({"--config", file.c_str()}).settings.config.proxy.threads, 9);
  EXPECT_EQ(parse({"--config", "none", "--print-config=toml", "--proxy.threads", "9"}).output, printed.output);
  EXPECT_EQ(parse({"--config", "none", "--print-config=markdown"}).output, print_markdown());
}

TEST_F(CommandLineTest, CheckConfigSaysGoodOrBad) {
  write("epd.toml", "drain_s = 1\n");
  const std::string file = path();
  EXPECT_EQ(parse({"--config", file.c_str(), "--check-config"}).action, Action::check);
  write("epd.toml", "drian_s = 1\n");
  const CommandLine bad = parse({"--config", file.c_str(), "--check-config"});
  EXPECT_EQ(bad.action, Action::done);
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_NE(bad.output.find("did you mean 'drain_s'"), std::string::npos) << bad.output;
  EXPECT_EQ(parse({"--config", file.c_str()}).exit_code, 1);
}

TEST_F(CommandLineTest, BadFlagsAreNamed) {
  const CommandLine unknown = parse({"--config", "none", "--no-such-flag"});
  EXPECT_EQ(unknown.action, Action::done);
  EXPECT_EQ(unknown.exit_code, 2);
  const CommandLine range = parse({"--config", "none", "--proxy.threads", "0"});
  EXPECT_EQ(range.exit_code, 1);
  EXPECT_NE(range.output.find("flag: proxy.threads is '0': expected an integer of 1..32"), std::string::npos)
      << range.output;
}

TEST_F(CommandLineTest, AnEmptyNameOfAFileOrFolderIsRefused) {
  for (const char* const flag : {"--config", "--config-dir"}) {
    const CommandLine line = parse({flag, "", "--check-config"});
    EXPECT_EQ(line.exit_code, 2) << flag;
    EXPECT_NE(line.output.find("names nothing"), std::string::npos) << line.output;
  }
}

TEST_F(CommandLineTest, KeygenAndVersion) {
  const CommandLine keygen = parse({"--keygen", "/tmp/k.toml"});
  EXPECT_EQ(keygen.action, Action::keygen);
  EXPECT_EQ(keygen.key_path, "/tmp/k.toml");
  const CommandLine version = parse({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_NE(version.output.find("epd 1.2.3"), std::string::npos);
}

}  // namespace
}  // namespace railhead::config
