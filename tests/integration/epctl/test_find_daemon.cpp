#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/integration/epctl/fake_daemon.hpp"
#include "tests/integration/epctl/program.hpp"

namespace railhead::epctl {
namespace {

using testing::HasSubstr;

FakeAnswers nothing_waits() {
  return {.snapshots = {{"why", R"({"waits":[]})"}}};
}

// A runtime folder with the place where the library puts private daemons. RAILHEAD_DAEMON=private, so that a system
// daemon of this machine is not asked.
struct Runtime {
  Folder folder;
  std::string sockets = folder / ("railhead-" + std::to_string(::geteuid()));
  std::vector<std::string> environment{"XDG_RUNTIME_DIR=" + folder.path(), "RAILHEAD_DAEMON=private"};
  Runtime() { std::filesystem::create_directory(sockets); }
};

TEST(FindDaemon, PathInTheEnvironment) {
  const Folder folder;
  const FakeDaemon daemon(folder / "epd.sock", nothing_waits());
  EXPECT_EQ(run_epctl({"why"}, {"RAILHEAD_DAEMON=" + folder / "epd.sock"}).out, "nothing waits\n");
}

TEST(FindDaemon, TheOnlyPrivateDaemon) {
  const Runtime runtime;
  const FakeDaemon daemon(runtime.sockets + "/job-1.sock", nothing_waits());
  { const ipc::UniqueFd gone = silent_listener(runtime.sockets + "/old-1.sock"); }
  const Ran ran = run_epctl({"why"}, runtime.environment);
  EXPECT_EQ(ran.out, "nothing waits\n") << ran.err;
}

TEST(FindDaemon, SeveralPrivateDaemonsAreListed) {
  const Runtime runtime;
  const ipc::UniqueFd one = silent_listener(runtime.sockets + "/a-1.sock");
  const ipc::UniqueFd two = silent_listener(runtime.sockets + "/b-1.sock");
  const Ran ran = run_epctl({"why"}, runtime.environment);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("2 private daemons listen, choose one with --socket:"));
  EXPECT_THAT(ran.err, HasSubstr(runtime.sockets + "/a-1.sock"));
  EXPECT_THAT(ran.err, HasSubstr(runtime.sockets + "/b-1.sock"));
}

TEST(FindDaemon, NoneIsUnreachable) {
  const Runtime runtime;
  const Ran ran = run_epctl({"why"}, runtime.environment);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("no daemon: no private daemon of uid"));
}

TEST(FindDaemon, TheOptionWinsOverTheEnvironment) {
  const Folder folder;
  const FakeDaemon daemon(folder / "epd.sock", nothing_waits());
  const Ran ran = run_epctl({"why", "--socket", folder / "epd.sock"}, {"RAILHEAD_DAEMON=" + folder / "none.sock"});
  EXPECT_EQ(ran.out, "nothing waits\n") << ran.err;
}

}  // namespace
}  // namespace railhead::epctl
