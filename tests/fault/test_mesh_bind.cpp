// The mesh between real daemons: addresses and keys.
#include <fstream>
#include <regex>

#include "tests/fault/world.hpp"

namespace railhead::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A new pair of mesh keys.
std::string make_keys(const World& world, const std::string& name) {
  std::string path = world.path(name);
  ChildProcess epd({EPD_PROGRAM, "--keygen", path}, {"IPATH_NO_BACKTRACE=1"}, world.path("keygen.log"));
  EXPECT_EQ(epd.wait(Milliseconds(20'000)), 0);
  return path;
}

bool has_ipv6_loopback() {
  std::ifstream in("/proc/net/if_inet6");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("00000000000000000000000000000001")) return true;
  }
  return false;
}

TEST(MeshBind, Ipv6) {
  if (!has_ipv6_loopback()) GTEST_SKIP() << "this machine has no IPv6 loopback";
  World world(2, {"--mesh.bind", "tcp://[::1]:0", "--fabric.bind", "::1"});
  world.populate({0, 1, 1});
  world.expect_good(world.everybody(), "round n=3");
  EXPECT_THAT(world.host(0).snapshot("status")["mesh"].get<std::string>(), HasSubstr("tcp://[::1]:"));
}

TEST(MeshBind, SameKeys) {
  World world(0);
  const std::string keys = make_keys(world, "mesh.key");
  for (const std::uint32_t h : {0U, 1U}) world.start_host(h, {"--mesh.key_file", keys});
  world.populate({0, 1, 1});
  world.expect_good(world.everybody(), "round n=3");
}

// Rank 1's daemon dials the coordinator and is turned away: both sides say so, and which setting it is about.
void expect_turned_away(World& world, const std::string& why) {
  for (const std::uint32_t h : {0U, 1U}) world.add_rank(h);
  const Reply id = world.rank(0).ask("id");
  world.rank(0).send("join id=" + id.text + " ranks=2 rank=0 join_ms=5000");
  world.rank(1).send("join id=" + id.text + " ranks=2 rank=1 join_ms=60000");
  // It may be gone before its address can be asked for.
  const std::regex said("mesh: turned away: a caller from (127\\.0\\.0\\.1|an unknown address) .*" + why);
  EXPECT_TRUE(eventually([&] { return std::regex_search(world.host(0).log(), said); })) << world.host(0).log();
  world.why(0, [&](const Json& w) { return w.value("text", "").find(why) != std::string::npos; });
  const Reply dialled = world.rank(1).reply();
  EXPECT_EQ(dialled.status, "peer_lost") << dialled.text;
  EXPECT_THAT(dialled.text, HasSubstr("mesh.key_file"));
  const Reply waited = world.rank(0).reply();
  EXPECT_EQ(waited.status, "timeout") << waited.text;
  EXPECT_THAT(waited.text, AllOf(HasSubstr("not there: rank 1; lately"), HasSubstr(why)));
}

TEST(MeshBind, AWrongKeyIsNamedOnBothSides) {
  World world(0);
  world.start_host(0, {"--mesh.key_file", make_keys(world, "mesh.key")});
  world.start_host(1, {"--mesh.key_file", make_keys(world, "other.key")});
  expect_turned_away(world, "does not hold this cluster's mesh key: every daemon needs the same mesh.key_file");
}

TEST(MeshBind, AMissingKeyIsNamedOnBothSides) {
  World world(0);
  world.start_host(0, {"--mesh.key_file", make_keys(world, "mesh.key")});
  world.start_host(1);
  expect_turned_away(world, "mesh.key_file, or none");
}

}  // namespace
}  // namespace railhead::test
