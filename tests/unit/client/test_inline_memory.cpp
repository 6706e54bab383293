#include <gtest/gtest.h>

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "client/inline_memory.hpp"

namespace railhead::client {
namespace {

template <class T, class Memory>
bool is_inside(const T* at, const Memory& memory) {
  const auto place = reinterpret_cast<std::uintptr_t>(at);
  const auto begin = reinterpret_cast<std::uintptr_t>(&memory);
  return place >= begin && place < begin + sizeof(memory);
}

TEST(InlineMemory, SmallTablesAreInsideAndApart) {
  InlineMemory<64> memory;
  std::pmr::vector<char> first(3, 'a', &memory);
  std::pmr::vector<std::uint64_t> second(4, ~std::uint64_t{0}, &memory);
  EXPECT_EQ(is_inside(first.data(), memory), kInlineTables);
  EXPECT_EQ(is_inside(second.data(), memory), kInlineTables);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % alignof(std::uint64_t), 0U);
  EXPECT_EQ(first, (std::pmr::vector<char>{'a', 'a', 'a'}));
}

TEST(InlineMemory, TheLastByteIsUsed) {
  InlineMemory<64> memory;
  const std::pmr::vector<std::uint64_t> whole(8, 1, &memory);
  EXPECT_EQ(is_inside(whole.data(), memory), kInlineTables);
  const std::pmr::vector<char> no_room(1, 'a', &memory);
  EXPECT_FALSE(is_inside(no_room.data(), memory));
}

// The heap's own checks (AddressSanitizer) see a block that is given back to the wrong owner, or to none.
TEST(InlineMemory, WhatDoesNotFitComesFromTheHeapAndGoesBackThere) {
  InlineMemory<64> memory;
  for (int round = 0; round < 3; ++round) {
    std::pmr::vector<std::uint64_t> table(&memory);
    for (std::uint64_t i = 0; i < 100; ++i) table.push_back(i);
    EXPECT_FALSE(is_inside(table.data(), memory));
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(table[i], i);
  }
}

TEST(InlineMemory, StricterAlignmentsAreTheHeaps) {
  struct alignas(64) Line {
    char bytes[64];
  };
  InlineMemory<128> memory;
  const std::pmr::vector<Line> lines(1, Line{}, &memory);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(lines.data()) % 64, 0U);
  EXPECT_FALSE(is_inside(lines.data(), memory));
}

}  // namespace
}  // namespace railhead::client
