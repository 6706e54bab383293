#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.hpp"
#include "ipc/pidfd.hpp"

namespace railhead::ipc {
namespace {

using namespace std::chrono_literals;
using test::Child;

UniqueFd pidfd_of(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}
int sleep_forever() {
  for (;;) ::pause();
}

TEST(Pidfd, OwnDescriptorNamesThisProcess) {
  const auto own = open_own_pidfd();
  ASSERT_TRUE(own) << own.error().to_string();
  const auto matches = pidfd_matches(own->get(), ::getpid());
  ASSERT_TRUE(matches) << matches.error().to_string();
  EXPECT_TRUE(*matches);
  EXPECT_EQ(::fcntl(own->get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(Pidfd, MatchesOnlyItsOwnProcess) {
  const Child child(sleep_forever);
  const UniqueFd fd = pidfd_of(child.pid());
  EXPECT_TRUE(pidfd_matches(fd.get(), child.pid()).value());
  EXPECT_FALSE(pidfd_matches(fd.get(), ::getpid()).value());
  EXPECT_FALSE(pidfd_matches(fd.get(), 0).value());
}

TEST(Pidfd, OtherDescriptorsAreRefused) {
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(pidfd_matches(null.get(), 1).error().code(), Code::protocol);
  EXPECT_EQ(pidfd_matches(-1, 1).error().code(), Code::system);
}

TEST(Pidfd, WaitEndsWithTheProcess) {
  Child child(sleep_forever);
  const UniqueFd fd = pidfd_of(child.pid());
  EXPECT_FALSE(wait_exit(fd.get(), Deadline::after(0ms)).value());
  EXPECT_FALSE(wait_exit(fd.get(), Deadline::after(3ms)).value());
  child.kill_now();
  EXPECT_TRUE(wait_exit(fd.get(), Deadline::after(20s)).value());
  EXPECT_TRUE(pidfd_matches(fd.get(), child.pid()).value()) << "not reaped yet";
  const pid_t pid = child.pid();
  child.wait();
  EXPECT_TRUE(wait_exit(fd.get(), Deadline::after(0ms)).value());
  EXPECT_FALSE(pidfd_matches(fd.get(), pid).value()) << "the number is free for others now";
}

TEST(Pidfd, WaitOnAClosedDescriptorIsAnError) {
  EXPECT_FALSE(wait_exit(1 << 19, Deadline::after(1s)));
}

}  // namespace
}  // namespace railhead::ipc
