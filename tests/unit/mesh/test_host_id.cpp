#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "daemon/mesh/host_id.hpp"

namespace railhead::mesh {
namespace {

TEST(HostId, HexRoundTripsAndTwoAreNeverTheSame) {
  const HostId a = random_host_id().value();
  const HostId b = random_host_id().value();
  EXPECT_NE(a, b);
  EXPECT_EQ(a.hex().size(), 32u);
  EXPECT_EQ(parse_host_id(a.hex()).value(), a);
}

TEST(HostId, RefusesBadText) {
  for (const std::string& text : {std::string(), std::string(31, 'a'), std::string(33, 'a'), std::string(32, 'g'),
                                  std::string(32, '0'), std::string("-1") + std::string(30, 'a')}) {
    EXPECT_FALSE(parse_host_id(text)) << text;
  }
}

TEST(HostId, FileKeepsTheIdentity) {
  const std::string path = testing::TempDir() + "host-id-" + std::to_string(::getpid());
  ::unlink(path.c_str());
  const auto first = load_or_create_host_id(path);
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(load_or_create_host_id(path).value(), *first);
  std::ofstream(path) << "broken\n";
  const auto broken = load_or_create_host_id(path);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message().find(path), std::string::npos);
  ::unlink(path.c_str());
  EXPECT_NE(load_or_create_host_id("").value(), load_or_create_host_id("").value());
  EXPECT_FALSE(load_or_create_host_id("/no/such/folder/id"));
}

}  // namespace
}  // namespace railhead::mesh
