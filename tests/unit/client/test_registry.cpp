#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "client/registry.hpp"

namespace railhead::client {
namespace {

struct Tag;

TEST(Registry, FindsWhatWasAddedAndNothingElse) {
  Registry<Tag, int> registry;
  Tag* const name = registry.add(std::make_shared<int>(5));
  ASSERT_NE(registry.find(name), nullptr);
  EXPECT_EQ(*registry.find(name), 5);
  int outside = 0;
  EXPECT_EQ(registry.find(nullptr), nullptr);
  EXPECT_EQ(registry.find(reinterpret_cast<const Tag*>(&outside)), nullptr);
}

TEST(Registry, ANameIsNeverUsedTwice) {
  Registry<Tag, int> registry;
  std::set<const Tag*> names;
  for (int i = 0; i < 1000; ++i) {
    Tag* const name = registry.add(std::make_shared<int>(i));
    EXPECT_TRUE(names.insert(name).second);
    ASSERT_NE(registry.take(name), nullptr);
    EXPECT_EQ(registry.find(name), nullptr);
    EXPECT_EQ(registry.take(name), nullptr);
  }
}

TEST(Registry, TakeIfTakesThoseAlone) {
  Registry<Tag, int> registry;
  Tag* const odd = registry.add(std::make_shared<int>(1));
  Tag* const even = registry.add(std::make_shared<int>(2));
  registry.take_if([](int v) { return v % 2 == 1; });
  EXPECT_EQ(registry.find(odd), nullptr);
  EXPECT_NE(registry.find(even), nullptr);
}

TEST(Registry, ThreadsAddAndTake) {
  Registry<Tag, int> registry;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&registry, t] {
      for (int i = 0; i < 2000; ++i) {
        Tag* const name = registry.add(std::make_shared<int>(t));
        const auto found = registry.take(name);
        ASSERT_NE(found, nullptr);
        ASSERT_EQ(*found, t);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace railhead::client
