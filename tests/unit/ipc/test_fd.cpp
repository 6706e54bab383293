#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "ipc/fd.hpp"

namespace railhead::ipc {
namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}
int open_null() {
  return ::open("/dev/null", O_RDWR | O_CLOEXEC);
}

TEST(UniqueFd, ClosesOnDestruction) {
  const int raw = open_null();
  { const UniqueFd fd(raw); }
  EXPECT_FALSE(is_open(raw));
}

TEST(UniqueFd, MoveLeavesOneOwner) {
  const int raw = open_null();
  UniqueFd first(raw);
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): what a move leaves is promised
  EXPECT_EQ(second.get(), raw);
  const int other = open_null();
  UniqueFd third(other);
  third = std::move(second);
  EXPECT_FALSE(is_open(other));
  EXPECT_TRUE(is_open(raw));
}

TEST(UniqueFd, SelfMoveKeepsTheDescriptor) {
  UniqueFd fd(open_null());
  UniqueFd& alias = fd;
  fd = std::move(alias);
  EXPECT_TRUE(is_open(fd.get()));
}

TEST(UniqueFd, ReleaseGivesUpOwnership) {
  const int raw = open_null();
  {
    UniqueFd fd(raw);
    EXPECT_EQ(fd.release(), raw);
    EXPECT_FALSE(fd);
  }
  EXPECT_TRUE(is_open(raw));
  ::close(raw);
}

TEST(UniqueFd, DupIsSeparateAndCloseOnExec) {
  UniqueFd fd(open_null());
  auto copy = fd.dup();
  ASSERT_TRUE(copy) << copy.error().to_string();
  EXPECT_NE(copy->get(), fd.get());
  EXPECT_EQ(::fcntl(copy->get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  fd.reset();
  EXPECT_TRUE(is_open(copy->get()));
}

TEST(UniqueFd, DupOfNothingIsAnError) {
  const auto copy = UniqueFd().dup();
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code(), Code::system);
}

}  // namespace
}  // namespace railhead::ipc
