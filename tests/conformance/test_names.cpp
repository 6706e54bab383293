// What the library says of itself without a session.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "railhead/railhead.h"

namespace railhead::test {
namespace {

TEST(Names, TheVersionIsThatOfTheHeaderWithACommitWhereThereIsOne) {
  const std::regex form(std::to_string(RH_VERSION_MAJOR) + "\\." + std::to_string(RH_VERSION_MINOR) +
                        "\\.[0-9]+( \\([^)]+\\))?");
  EXPECT_TRUE(std::regex_match(rh_version(), form)) << rh_version();
}

TEST(Names, EveryStatusHasOneOfItsOwn) {
  std::set<std::string> names;
  for (int status = RH_OK; status <= RH_IN_PROGRESS; ++status) {
    const std::string name = rh_status_name(static_cast<rh_status>(status));
    EXPECT_FALSE(name.empty()) << status;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  for (const int unknown : {-1, RH_IN_PROGRESS + 1, 1'000'000}) {
    ASSERT_NE(rh_status_name(static_cast<rh_status>(unknown)), nullptr);
    EXPECT_FALSE(names.contains(rh_status_name(static_cast<rh_status>(unknown)))) << unknown;
  }
}

}  // namespace
}  // namespace railhead::test
