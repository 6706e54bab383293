// A session that cannot be, for what the environment asks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "railhead/railhead.hpp"

namespace railhead::test {
namespace {

// In a process of its own: the variable is read once.
TEST(RefusedSessionDeathTest, AWrongSimdLevelIsNamedWithWhatIsAllowed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto open = [] {
    ::setenv("RAILHEAD_SIMD", "sse", 1);
    auto config = make<rh_session_config>();
    config.daemon = "/nowhere/epd.sock";  // not asked for: the level is looked at first
    rh_session* session = nullptr;
    const rh_status status = rh_session_open(&config, &session);
    std::fputs(rh_last_error(), stderr);
    ::_exit(session == nullptr ? status : 0);
  };
  EXPECT_EXIT(open(), testing::ExitedWithCode(RH_INVALID_ARGUMENT),
              "RAILHEAD_SIMD is 'sse'; allowed are 'portable' and 'avx512'");
}

}  // namespace
}  // namespace railhead::test
