#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "daemon/mesh/keys.hpp"

namespace railhead::mesh {
namespace {

constexpr unsigned kNobody = 65'534;

// For root alone, whom no mode keeps out: reads as another user.
class AsNobody {
 public:
  AsNobody() {
    EXPECT_EQ(::setegid(kNobody), 0);
    EXPECT_EQ(::seteuid(kNobody), 0);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() {
    EXPECT_EQ(::seteuid(0), 0);
    EXPECT_EQ(::setegid(0), 0);
  }
};

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

TEST_F(Keys, RefusesAFileThatOthersCanReadOrWrite) {
  ASSERT_TRUE(generate_keys(path_));
  for (const mode_t mode : {0644U, 0604U, 0602U, 0601U, 0660U, 0620U}) {
    ::chmod(path_.c_str(), mode);
    const auto loaded = load_keys(path_);
    ASSERT_FALSE(loaded) << std::oct << mode;
    EXPECT_EQ(loaded.error().code(), Code::permission);
    EXPECT_NE(loaded.error().message().find("chmod 600 " + path_), std::string::npos) << loaded.error().message();
  }
}

// As the installed unit has it: root's, with the daemon's group.
TEST_F(Keys, TheDaemonsOwnGroupMayReadAndNoOther) {
  ASSERT_TRUE(generate_keys(path_));
  ::chmod(path_.c_str(), 0640);
  ASSERT_TRUE(load_keys(path_)) << load_keys(path_).error().message();
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(path_.c_str(), 0, kNobody), 0);
  const auto as_root = load_keys(path_);
  ASSERT_FALSE(as_root);
  EXPECT_EQ(as_root.error().code(), Code::permission);
  EXPECT_NE(as_root.error().message().find("can be read by the group"), std::string::npos) << as_root.error().message();
  const AsNobody nobody;
  EXPECT_TRUE(load_keys(path_)) << load_keys(path_).error().message();
}

TEST_F(Keys, SaysTheSystemsReasonAndWhatToDo) {
  ASSERT_TRUE(generate_keys(path_));
  if (::geteuid() != 0) GTEST_SKIP() << "only root changes its user";
  const AsNobody nobody;
  const auto refused = load_keys(path_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::permission);
  for (const std::string& part : {path_ + ": Permission denied", std::string("chown"), "chmod 640 " + path_}) {
    EXPECT_NE(refused.error().message().find(part), std::string::npos) << part << ": " << refused.error().message();
  }
}

TEST_F(Keys, RefusesMissingBrokenAndMixedFiles) {
  EXPECT_NE(load_keys(path_).error().message().find("epctl keygen"), std::string::npos);
  EXPECT_NE(load_keys(path_).error().message().find("No such file"), std::string::npos);
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
