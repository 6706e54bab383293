#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "daemon/mesh/keys.hpp"

namespace railhead::mesh {
namespace {

class Keys : public testing::Test {
 protected:
  void SetUp() override { ::unlink(path_.c_str()); }
  void TearDown() override { ::unlink(path_.c_str()); }
  void write(const std::string& text) const {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), 0600);
  }
  std::string path_ = testing::TempDir() + "keys-" + std::to_string(::getpid()) + ".toml";
};

TEST_F(Keys, GeneratedFileLoadsAndIsPrivate) {
  const auto made = generate_keys(path_);
  ASSERT_TRUE(made) << made.error().to_string();
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto loaded = load_keys(path_);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(loaded->public_key, made->public_key);
  EXPECT_EQ(loaded->secret_key, made->secret_key);
}

TEST_F(Keys, NeverOverwrites) {
  write("precious");
  const auto made = generate_keys(path_);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("not overwritten"), std::string::npos);
  std::string text;
  std::getline(std::ifstream(path_) >> std::ws, text);
  EXPECT_EQ(text, "precious");
}

TEST_F(Keys, RefusesAFileThatOthersCanRead) {
  ASSERT_TRUE(generate_keys(path_));
  ::chmod(path_.c_str(), 0640);
  const auto loaded = load_keys(path_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::permission);
  EXPECT_NE(loaded.error().message().find("chmod 600"), std::string::npos);
}

TEST_F(Keys, RefusesMissingBrokenAndMixedFiles) {
  EXPECT_NE(load_keys(path_).error().message().find("epctl keygen"), std::string::npos);
  write("public = [");
  EXPECT_EQ(load_keys(path_).error().code(), Code::invalid_argument);
  write("public = 'short'\nsecret = 'short'\n");
  EXPECT_NE(load_keys(path_).error().message().find("40 characters"), std::string::npos);
  ::unlink(path_.c_str());
  const auto one = generate_keys(path_).value();
  ::unlink(path_.c_str());
  const auto two = generate_keys(path_).value();
  write("public = '" + one.public_key + "'\nsecret = '" + two.secret_key + "'\n");
  EXPECT_NE(load_keys(path_).error().message().find("belong together"), std::string::npos);
}

}  // namespace
}  // namespace railhead::mesh
