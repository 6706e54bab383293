#include <gtest/gtest.h>
#include <sched.h>

#include <set>

#include "daemon/config/key_table.hpp"
#include "ipc/layout/daemon_page.hpp"

namespace railhead::config {
namespace {

TEST(KeyTable, EveryKeyIsComplete) {
  std::set<std::string_view> names;
  std::set<const void*> places;
  Config config;
  for (const Key& key : keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << "twice: " << key.name;
    EXPECT_EQ(find_key(key.name), &key);
    EXPECT_TRUE(key.help.ends_with(".")) << key.name;
    EXPECT_FALSE(type_text(key).empty()) << key.name;
    std::visit([&](auto* place) { EXPECT_TRUE(places.insert(place).second) << "two keys, one member: " << key.name; },
               key.target(config));
    if (std::holds_alternative<std::int64_t*>(key.target(config))) {
      EXPECT_LT(key.min, key.max) << key.name;
    }
  }
}

TEST(KeyTable, DefaultsAreValidAndRoundTripThroughText) {
  for (const Key& key : keys()) {
    Config config;
    const std::string text = value_text(key, config);
    EXPECT_TRUE(set_value(key, config, text).ok()) << key.name << " = " << text;
    EXPECT_EQ(value_text(key, config), text);
  }
  EXPECT_TRUE(check_together(Config()).ok());
}

TEST(KeyTable, BoundsAreChecked) {
  for (const Key& key : keys()) {
    Config config;
    if (!std::holds_alternative<std::int64_t*>(key.target(config))) continue;
    EXPECT_TRUE(set_value(key, config, std::to_string(key.min)).ok()) << key.name;
    EXPECT_TRUE(set_value(key, config, std::to_string(key.max)).ok()) << key.name;
    for (const std::string& bad : {std::to_string(key.min - 1), std::to_string(key.max + 1), std::string("x"),
                                   std::string("1.5"), std::string(""), std::string("99999999999999999999")}) {
      const Status status = set_value(key, config, bad);
      EXPECT_EQ(status.code(), Code::invalid_argument) << key.name << " = " << bad;
      EXPECT_NE(status.message().find(std::to_string(key.max)), std::string::npos) << status.message();
    }
    EXPECT_EQ(value_text(key, config), std::to_string(key.max)) << "a refused value must change nothing";
  }
}

// What the table admits, the daemon has room for.
TEST(KeyTable, AsManyProxiesAsTheDaemonPageHolds) {
  EXPECT_EQ(find_key("proxy.threads")->max, ipc::kMaxProxies);
}

TEST(KeyTable, ListsModesChoicesAndSwitches) {
  Config config;
  const auto set = [&](const char* name, const char* text) { return set_value(*find_key(name), config, text).ok(); };
  EXPECT_TRUE(set("proxy.cpus", "8,0-3,2"));
  EXPECT_EQ(config.proxy.cpus, (std::vector<std::int64_t>{0, 1, 2, 3, 8}));
  EXPECT_EQ(value_text(*find_key("proxy.cpus"), config), "0-3,8");
  for (const char* bad : {"3-1", "-1", "1,", ",1", "a", "1-", "0-99999999", "4294967296"}) {
    EXPECT_FALSE(set("proxy.cpus", bad)) << bad;
  }
  EXPECT_TRUE(set("proxy.cpus", ""));
  EXPECT_TRUE(config.proxy.cpus.empty());
  EXPECT_TRUE(set("allowed_uids", "4294967295"));

  EXPECT_TRUE(set("socket_mode", "0600"));
  EXPECT_EQ(config.socket_mode.bits, 0600u);
  for (const char* bad : {"0888", "1000", "rw", ""}) EXPECT_FALSE(set("socket_mode", bad)) << bad;

  EXPECT_TRUE(set("log.level", "debug"));
  EXPECT_FALSE(set("log.level", "loud"));
  EXPECT_FALSE(set("fabric.endpoint", "dgram"));
  EXPECT_FALSE(set("mesh.insecure", "maybe"));
  EXPECT_FALSE(set("socket", "a\nb"));
}

TEST(KeyTable, NearestName) {
  EXPECT_EQ(nearest_key("mesh.bnid"), "mesh.bind");
  EXPECT_EQ(nearest_key("heartbeat_ms"), "mesh.heartbeat_ms");
  EXPECT_EQ(nearest_key("log.levle"), "log.level");
  EXPECT_EQ(nearest_key("completely.different.thing"), "");
  EXPECT_EQ(nearest_key(std::string(100'000, 'x')), "");
}

TEST(KeyTable, NearestTable) {
  EXPECT_TRUE(is_table("mesh"));
  EXPECT_FALSE(is_table("drain_s"));
  EXPECT_FALSE(is_table(""));
  EXPECT_EQ(nearest_table("limit"), "limits");
  EXPECT_EQ(nearest_table("Mesh"), "mesh");
  EXPECT_EQ(nearest_table("zebra"), "");
  EXPECT_EQ(nearest_table(std::string(100'000, 'x')), "");
}

TEST(KeyTable, ProxiesRunWhereTheProcessMay) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  Config config;
  config.proxy.cpus = {first};
  EXPECT_TRUE(check_together(config).ok());
  config.proxy.cpus = {first, first + 1, 70'000};
  const std::string refused = check_together(config).message();
  ::sched_setaffinity(0, sizeof(before), &before);
  const std::string beyond = std::to_string(first + 1) + ",70000";
  EXPECT_EQ(refused, "proxy.cpus names " + beyond + ", but this process may run on " + std::to_string(first) + " only");
}

TEST(KeyTable, TimeoutMustHoldTwoHeartbeats) {
  Config config;
  config.mesh.heartbeat_ms = 1500;
  EXPECT_NE(check_together(config).message().find("mesh.timeout_ms"), std::string::npos);
}

}  // namespace
}  // namespace railhead::config
