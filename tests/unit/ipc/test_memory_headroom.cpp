#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "ipc/memory_headroom.hpp"

namespace railhead::ipc {
namespace {

namespace fs = std::filesystem;

// A made-up /proc and cgroup mounts, gone after the test.
class MemoryHeadroomTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "headroom-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    roots_ = {root_ + "/proc", root_ + "/v1", root_ + "/v2"};
    put("proc/meminfo", "MemTotal:       2000 kB\nMemFree: 10 kB\nMemAvailable:    1000 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    const fs::path full = fs::path(root_) / path;
    fs::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }

  MemoryHeadroom measure() {
    const auto headroom = memory_headroom(roots_);
    EXPECT_TRUE(headroom);
    return headroom.value_or(MemoryHeadroom{});
  }

  std::string root_;
  MemoryRoots roots_;
};

TEST_F(MemoryHeadroomTest, WithoutCgroupsTheHostDecides) {
  EXPECT_EQ(measure().free_bytes, 1000U * 1024);
  EXPECT_THAT(measure().limited_by, ::testing::HasSubstr("MemAvailable"));
}

TEST_F(MemoryHeadroomTest, V2LimitCountsCleanCacheAsFree) {
  put("proc/self/cgroup", "0::/job\n");
  put("v2/job/memory.max", "600000\n");
  put("v2/job/memory.current", "500000\n");
  put("v2/job/memory.stat", "anon 100\nfile 300000\ninactive_file 200000\nactive_file 1\n");
  EXPECT_EQ(measure().free_bytes, 300000U);
  EXPECT_THAT(measure().limited_by, ::testing::HasSubstr("/job"));
}

TEST_F(MemoryHeadroomTest, V2EnclosingGroupsCountToo) {
  put("proc/self/cgroup", "0::/slice/job\n");
  put("v2/slice/job/memory.max", "max\n");
  put("v2/slice/job/memory.current", "1000\n");
  put("v2/slice/memory.max", "50000\n");
  put("v2/slice/memory.current", "20000\n");
  EXPECT_EQ(measure().free_bytes, 30000U);
  EXPECT_THAT(measure().limited_by, ::testing::EndsWith(" /slice"));
}

TEST_F(MemoryHeadroomTest, V1LimitIsRead) {
  put("proc/self/cgroup", "9:cpu,cpuacct:/a\n4:hugetlb,memory:/b\n0::/\n");
  put("v1/b/memory.limit_in_bytes", "70000\n");
  put("v1/b/memory.usage_in_bytes", "40000\n");
  put("v1/b/memory.stat", "inactive_file 1\ntotal_inactive_file 5000\n");
  EXPECT_EQ(measure().free_bytes, 35000U);
}

TEST_F(MemoryHeadroomTest, V1HugeNumberIsNoLimit) {
  put("proc/self/cgroup", "4:memory:/\n");
  put("v1/memory.limit_in_bytes", "9223372036854771712\n");
  put("v1/memory.usage_in_bytes", "40000\n");
  EXPECT_EQ(measure().free_bytes, 1000U * 1024);
}

// In a container the path in /proc/self/cgroup may be the host's; the mount's root is the container's own group.
TEST_F(MemoryHeadroomTest, UnknownPathFallsBackToTheMountRoot) {
  put("proc/self/cgroup", "0::/host/only/path\n");
  put("v2/memory.max", "9000\n");
  put("v2/memory.current", "1000\n");
  EXPECT_EQ(measure().free_bytes, 8000U);
}

TEST_F(MemoryHeadroomTest, UsageAboveTheLimitIsZero) {
  put("proc/self/cgroup", "0::/job\n");
  put("v2/job/memory.max", "1000\n");
  put("v2/job/memory.current", "5000\n");
  EXPECT_EQ(measure().free_bytes, 0U);
}

TEST_F(MemoryHeadroomTest, GarbageInCgroupFilesIsIgnored) {
  put("proc/self/cgroup", "nonsense\n0::/job\n:\n");
  put("v2/job/memory.max", "\n");
  put("v2/job/memory.current", "x\n");
  EXPECT_EQ(measure().free_bytes, 1000U * 1024);
}

TEST_F(MemoryHeadroomTest, NoMemAvailableIsAnError) {
  put("proc/meminfo", "MemTotal: 5 kB\n");
  const auto headroom = memory_headroom(roots_);
  ASSERT_FALSE(headroom);
  EXPECT_EQ(headroom.error().code(), Code::system);
}

TEST(MemoryHeadroom, ThisMachineHasSome) {
  const auto headroom = memory_headroom();
  ASSERT_TRUE(headroom) << headroom.error().to_string();
  EXPECT_GT(headroom->free_bytes, 0U);
}

}  // namespace
}  // namespace railhead::ipc
