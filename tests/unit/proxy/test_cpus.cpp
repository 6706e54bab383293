#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "daemon/proxy/cpus.hpp"

namespace railhead::daemon::rail {
namespace {

TEST(Cpus, ReadsListsAndRanges) {
  EXPECT_EQ(parse_cpu_list("0"), (std::vector<int>{0}));
  EXPECT_EQ(parse_cpu_list("0-2,7"), (std::vector<int>{0, 1, 2, 7}));
}

TEST(Cpus, NamesWhatIsWrong) {
  for (const char* bad : {"x", "1-", "3-1", "-1", "0,,1", "99999999", "1 "}) {
    const auto parsed = parse_cpu_list(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code(), Code::invalid_argument);
    EXPECT_NE(parsed.error().message().find(bad), std::string::npos);
  }
}

TEST(Cpus, BindsTheCallingThread) {
  std::thread([] {
    cpu_set_t allowed;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    const auto bound = bind_thread(std::to_string(first), "");
    ASSERT_TRUE(bound);
    ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    EXPECT_EQ(CPU_COUNT(&allowed), 1);
    EXPECT_TRUE(CPU_ISSET(first, &allowed));
  }).join();
}

TEST(Cpus, AnUnknownDeviceLeavesTheThreadUnboundAndSaysSo) {
  const auto bound = bind_thread("", "nic-that-is-not-there");
  ASSERT_TRUE(bound);
  EXPECT_EQ(*bound, "not bound: no device 'nic-that-is-not-there' in the topology");
}

}  // namespace
}  // namespace railhead::daemon::rail
