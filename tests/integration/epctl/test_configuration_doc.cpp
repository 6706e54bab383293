#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "tests/integration/epctl/program.hpp"

namespace railhead::epctl {
namespace {

// The table in docs/configuration.md is printed by the daemon itself; this fails when a key changed since.
TEST(ConfigurationDoc, HoldsTheTableThatTheDaemonPrints) {
  Program epd({EPD_PROGRAM, "--print-config=markdown"});
  ASSERT_TRUE(epd.started());
  epd.drain();
  ASSERT_EQ(epd.wait(), 0) << epd.error();
  std::ifstream file(CONFIGURATION_DOC);
  ASSERT_TRUE(file) << CONFIGURATION_DOC;
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), testing::HasSubstr(epd.output()))
      << "replace the table by the output of: epd --print-config=markdown";
}

}  // namespace
}  // namespace railhead::epctl
