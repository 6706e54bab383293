#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "client/fork_mark.hpp"

namespace railhead::client {
namespace {

TEST(ForkMark, SaysNothingBeforeItIsSet) {
  const ForkMark mark;
  EXPECT_FALSE(mark.in_child());
}

TEST(ForkMark, TellsTheChildAndLeavesTheParentAlone) {
  ForkMark mark;
  ASSERT_TRUE(mark.set().ok());
  ASSERT_TRUE(mark.set().ok());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(mark.in_child() ? 7 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_FALSE(mark.in_child());
}

// Languages that do not fork through the C library run no handlers of it.
TEST(ForkMark, TellsAChildThatTheCLibraryDidNotMake) {
  ForkMark mark;
  ASSERT_TRUE(mark.set().ok());
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) ::_exit(mark.in_child() ? 7 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace railhead::client
