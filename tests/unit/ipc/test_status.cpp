#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

#include "ipc/status.hpp"

namespace railhead {
namespace {

TEST(Status, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::ok);
}

TEST(Status, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Code::in_progress); ++code) {
    names.emplace(code_name(static_cast<Code>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Code::in_progress) + 1);
  EXPECT_EQ(names.count("unknown"), 0U);
  EXPECT_EQ(code_name(static_cast<Code>(999)), "unknown");
}

TEST(Status, FailCarriesCodeAndSentence) {
  const Result<int> result = fail(Code::timeout, "rank 3 did not come");
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.error().ok());
  EXPECT_EQ(result.error().to_string(), "timeout: rank 3 did not come");
}

TEST(Status, SystemStatusNamesErrno) {
  const Status status = system_status("open /x", ENOENT);
  EXPECT_EQ(status.code(), Code::system);
  EXPECT_EQ(status.message(), "open /x: No such file or directory (errno 2)");
}

TEST(Status, LackOfMemoryInTheSystemHasItsOwnCode) {
  EXPECT_EQ(system_status("mmap", ENOMEM).code(), Code::out_of_memory);
}

}  // namespace
}  // namespace railhead
