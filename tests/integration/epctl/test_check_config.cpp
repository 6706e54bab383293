// --check-config knows what the start refuses: both say the same.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "tests/integration/epctl/fake_daemon.hpp"
#include "tests/integration/epctl/program.hpp"

namespace railhead::epctl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Ran run_epd(const Folder& folder, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {EPD_PROGRAM, "--config", "none", "--socket", folder / "epd.sock"});
  Program epd(std::move(flags));
  if (!epd.started()) return {};
  epd.drain();
  const int status = epd.wait();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, epd.output(), epd.error()};
}

void expect_refused(const Folder& folder, const std::vector<std::string>& flags, const std::string& said) {
  std::vector<std::string> question = flags;
  question.emplace_back("--check-config");
  const Ran asked = run_epd(folder, question);
  EXPECT_EQ(asked.exit_code, 1) << said << ": " << asked.out;
  EXPECT_THAT(asked.err, HasSubstr(said));
  const Ran started = run_epd(folder, flags);
  EXPECT_EQ(started.exit_code, 1) << said;
  EXPECT_EQ(started.err, asked.err);
  EXPECT_FALSE(std::filesystem::exists(folder / "epd.sock"));
}

TEST(CheckConfig, SaysWhatTheStartRefuses) {
  const Folder folder;
  std::ofstream(folder / "bad.key") << "x";
  std::filesystem::permissions(folder / "bad.key", std::filesystem::perms(0600));
  expect_refused(folder, {"--fabric.fault", "garbage"}, "fabric.fault is 'garbage': fault 'garbage': has no '='");
  expect_refused(folder, {"--fabric.bind", "nosuchif0"}, "fabric.bind: bind address 'nosuchif0'");
  expect_refused(folder, {"--mesh.bind", "garbage"}, "mesh.bind is 'garbage': expected tcp://HOST:PORT");
  expect_refused(folder, {"--mesh.bind", "tcp://127.0.0.1:99999"}, "mesh.bind is 'tcp://127.0.0.1:99999'");
  expect_refused(folder, {"--mesh.bind", "tcp://0.0.0.0:0", "--mesh.advertise", "tcp://10.0.0.1:0"},
                 "mesh.bind is tcp://0.0.0.0:0, which other hosts can reach, and there are no keys");
  expect_refused(folder, {"--mesh.bind", "tcp://0.0.0.0:0", "--insecure"}, "an address nobody can dial");
  expect_refused(folder, {"--mesh.advertise", "foo"}, "mesh.advertise is 'foo'");
  expect_refused(folder, {"--mesh.key_file", folder / "no.key"},
                 "mesh.key_file: cannot read the key file " + folder / "no.key");
  expect_refused(folder, {"--mesh.key_file", folder / "bad.key"},
                 "mesh.key_file: the key file " + folder / "bad.key" + " is not TOML");
  expect_refused(folder, {"--socket_group", "no-such-group"}, "socket_group 'no-such-group' does not exist");
  expect_refused(folder, {"--socket", "/tmp/" + std::string(200, 'x')}, "socket path /tmp/xxx");
  expect_refused(folder, {"--host_id_file", folder / "no/id"},
                 "host_id_file: cannot create the host id file " + folder / "no/id" + ": No such file");
  expect_refused(folder, {"--host_id_file", folder / "bad.key"},
                 "host_id_file: " + folder / "bad.key" + ": a host id is");
  expect_refused(folder, {"--proxy.threads", "33"}, "proxy.threads is '33': expected an integer of 1..32");
}

TEST(CheckConfig, SaysAllThatIsWrongAndMakesNothing) {
  const Folder folder;
  const Ran bad = run_epd(folder, {"--fabric.fault", "garbage", "--mesh.bind", "garbage", "--check-config"});
  EXPECT_THAT(bad.err, AllOf(HasSubstr("fabric.fault is"), HasSubstr("\n  mesh.bind is")));
  const Ran good = run_epd(folder, {"--host_id_file", folder / "id", "--check-config"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out, "the configuration is good\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace railhead::epctl
