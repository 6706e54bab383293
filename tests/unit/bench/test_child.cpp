#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "tools/ep-bench/launch/child.hpp"

namespace railhead::bench {
namespace {

using testing::HasSubstr;

ipc::Deadline soon() {
  return ipc::Deadline::after(std::chrono::seconds(20));
}

TEST(Child, ReportsItsExitCode) {
  auto child = Child::spawn("shell", {"sh", "-c", "exit 3"});
  ASSERT_TRUE(child);
  EXPECT_EQ(*child->wait(soon()), 3);
  EXPECT_FALSE(child->running());
}

TEST(Child, ReportsTheSignalThatKilledIt) {
  auto child = Child::spawn("sleeper", {"sleep", "100"});
  ASSERT_TRUE(child);
  child->send_signal(SIGKILL);
  EXPECT_EQ(*child->wait(soon()), 128 + SIGKILL);
}

TEST(Child, IsGoneWithItsOwner) {
  pid_t pid = 0;
  {
    auto child = Child::spawn("sleeper", {"sleep", "100"});
    ASSERT_TRUE(child);
    pid = child->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(Child, StopKillsWhatIgnoresTheRequest) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  auto child = Child::spawn("stubborn", {"sh", "-c", "trap '' TERM; echo; while :; do sleep 0.05; done"},
                            {.network = -1, .cores = {}, .pass = {}, .output = {}, .stdout_fd = ready[1]});
  ASSERT_TRUE(child);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);  // the trap is set
  child->stop(ipc::Deadline::after(std::chrono::milliseconds(20)));
  EXPECT_FALSE(child->running());
  close(ready[0]);
  close(ready[1]);
}

TEST(Child, GetsDescriptorsUnderTheirNumbers) {
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
  auto child =
      Child::spawn("writer", {"sh", "-c", "echo hello >&3; echo world >&4"},
                   {.network = -1, .cores = {}, .pass = {{pipes[1], 3}, {pipes[1], 4}}, .output = {}, .stdout_fd = -1});
  ASSERT_TRUE(child);
  EXPECT_EQ(*child->wait(soon()), 0);
  char text[12];
  EXPECT_EQ(read(pipes[0], text, sizeof(text)), 12);
  EXPECT_EQ(std::string(text, sizeof(text)), "hello\nworld\n");
  close(pipes[0]);
  close(pipes[1]);
}

TEST(RunProgram, ReturnsWhatWasWritten) {
  EXPECT_EQ(*run_program("echo", {"echo", "some words"}, soon()), "some words\n");
}

TEST(RunProgram, AFailureHoldsCodeAndOutput) {
  const auto failed = run_program("shell", {"sh", "-c", "echo too bad >&2; exit 4"}, soon());
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message(), AllOf(HasSubstr("shell ended with exit code 4"), HasSubstr("too bad")));
}

TEST(RunProgram, EndsWithItsDeadline) {
  const auto late = run_program("sleeper", {"sleep", "100"}, ipc::Deadline::after(std::chrono::milliseconds(30)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::timeout);
}

}  // namespace
}  // namespace railhead::bench
