#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "tests/integration/epctl/fake_daemon.hpp"
#include "tests/integration/epctl/program.hpp"

namespace railhead::epctl {
namespace {

std::string page() {
  std::ifstream file(CONFIGURATION_DOC);
  EXPECT_TRUE(file) << CONFIGURATION_DOC;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What the page prints between ```toml and ```, one text per example.
std::vector<std::string> examples() {
  const std::string text = page();
  const std::string begin = "\n```toml\n";
  std::vector<std::string> out;
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    out.push_back(text.substr(at, text.find("```", at) - at));
  }
  return out;
}

// The table in docs/configuration.md is printed by the daemon itself; this fails when a key changed since.
TEST(ConfigurationDoc, HoldsTheTableThatTheDaemonPrints) {
  Program epd({EPD_PROGRAM, "--print-config=markdown"});
  ASSERT_TRUE(epd.started());
  epd.drain();
  ASSERT_EQ(epd.wait(), 0) << epd.error();
  EXPECT_THAT(page(), testing::HasSubstr(epd.output()))
      << "replace the table by the output of: epd --print-config=markdown";
}

TEST(ConfigurationDoc, ItsExamplesAreGood) {
  const Folder folder;
  ASSERT_EQ(run_epctl({"keygen", folder / "mesh.key"}).exit_code, 0);
  EXPECT_FALSE(examples().empty());
  for (const std::string& example : examples()) {
    std::ofstream(folder / "epd.toml") << example;
    // This machine has no keys where the example has them.
    Program epd(
        {EPD_PROGRAM, "--config", folder / "epd.toml", "--mesh.key_file", folder / "mesh.key", "--check-config"});
    ASSERT_TRUE(epd.started());
    epd.drain();
    EXPECT_EQ(epd.wait(), 0) << example << epd.error();
  }
}

}  // namespace
}  // namespace railhead::epctl
