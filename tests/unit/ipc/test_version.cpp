#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ipc/version.hpp"

namespace railhead::ipc {
namespace {

// Three numbers, then perhaps what git called the commit.
TEST(Version, BuildStringStartsWithTheProjectVersion) {
  EXPECT_THAT(std::string(build_string()), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+( \\([^)@]+\\))?"));
}

TEST(Version, ProtocolVersionIsSet) {
  EXPECT_GE(kProtocolVersion, 1U);
}

}  // namespace
}  // namespace railhead::ipc
