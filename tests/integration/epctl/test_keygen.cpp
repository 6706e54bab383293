#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/epctl/fake_daemon.hpp"
#include "tests/integration/epctl/program.hpp"

namespace railhead::epctl {
namespace {

using testing::HasSubstr;

TEST(Keygen, WritesAFileThatOnlyItsOwnerReads) {
  const Folder folder;
  const Ran ran = run_epctl({"keygen", folder / "mesh.key", "--json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["key_file"], folder / "mesh.key");
  struct stat info {};
  ASSERT_EQ(::stat((folder / "mesh.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST(Keygen, NeverOverwrites) {
  const Folder folder;
  std::ofstream(folder / "mesh.key") << "precious";
  const Ran ran = run_epctl({"keygen", folder / "mesh.key"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("exists"));
  std::string text;
  std::ifstream(folder / "mesh.key") >> text;
  EXPECT_EQ(text, "precious");
}

TEST(Keygen, SaysWhichProgramIsMissing) {
  const Folder folder;
  const Ran ran = run_epctl({"keygen", folder / "mesh.key"}, {"RAILHEAD_EPD=" + folder / "no-epd"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("cannot start " + folder / "no-epd"));
}

}  // namespace
}  // namespace railhead::epctl
