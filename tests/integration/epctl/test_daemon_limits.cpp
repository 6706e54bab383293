// A daemon that cannot have what it needs says so and ends, in place of an abort inside a library.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/epctl/fake_daemon.hpp"
#include "tests/integration/epctl/program.hpp"

namespace railhead::epctl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// `before` sets the limits in the shell that becomes the daemon; `as` runs it as somebody else.
std::vector<std::string> limited(const Folder& folder, const std::string& before, const std::string& as = "") {
  return {"/bin/bash", "-c",        before + " && exec " + as + " \"$@\"",
          "sh",        EPD_PROGRAM, "--config",
          "none",      "--socket",  folder / "epd.sock"};
}

void expect_sentence(std::vector<std::string> words, const std::string& said) {
  const std::string limits = words[2];
  Program epd(std::move(words));
  ASSERT_TRUE(epd.started());
  epd.drain();
  epd.signal(SIGKILL);  // one that runs after all
  const int status = epd.wait();
  EXPECT_TRUE(WIFEXITED(status)) << limits << ": " << epd.error();
  EXPECT_EQ(WEXITSTATUS(status), 1) << limits;
  EXPECT_THAT(epd.error(), AllOf(HasSubstr("epd: limit_exceeded: the daemon needs"), HasSubstr(said)));
}

TEST(DaemonLimits, TooFewDescriptorsAreSaid) {
  const Folder folder;
  for (const char* const limit : {"ulimit -n 16", "ulimit -n 18", "ulimit -n 24", "ulimit -n 40"}) {
    expect_sentence(limited(folder, limit), "LimitNOFILE");
  }
}

TEST(DaemonLimits, TooFewThreadsAreSaid) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root changes its user, and this user's other processes count";
  const Folder folder;
  // A user that nobody else of this machine is.
  const std::string as = "setpriv --reuid=64999 --clear-groups";
  Program reach({"/bin/bash", "-c", as + " test -x " EPD_PROGRAM});
  reach.drain();
  if (reach.wait() != 0) GTEST_SKIP() << "no setpriv, or a build folder that is closed to other users";
  for (const char* const limit : {"ulimit -u 1", "ulimit -u 2", "ulimit -u 4", "ulimit -u 6"}) {
    expect_sentence(limited(folder, limit, as), "ulimit -u");
  }
}

TEST(DaemonLimits, WhatIsAskedForIsEnough) {
  const Folder folder;
  Program epd(limited(folder, "ulimit -n 64"));
  ASSERT_TRUE(epd.started());
  EXPECT_TRUE(epd.await_error("ready: socket")) << epd.error();
}

}  // namespace
}  // namespace railhead::epctl
