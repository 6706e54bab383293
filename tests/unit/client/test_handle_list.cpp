#include <gtest/gtest.h>

#include <memory>

#include "client/handle_list.hpp"

namespace railhead::client {
namespace {

std::shared_ptr<Handle> make_handle() {
  auto arena = std::make_shared<Arena>([](auto&&...) { return Result<void>(); });
  return std::make_shared<Handle>(std::move(arena), std::make_shared<SpareTables>());
}

TEST(HandleList, RefusesOneMoreThanThereCanBe) {
  HandleList list(2);
  const auto first = make_handle();
  const auto second = make_handle();
  ASSERT_TRUE(list.make_room());
  list.add(1, first);
  ASSERT_TRUE(list.make_room());
  list.add(2, second);
  const auto full = list.make_room();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), Code::limit_exceeded);
  EXPECT_EQ(full.error().message(), "2 handles live, max_handles is 2: release some");
  list.release();
  EXPECT_TRUE(list.make_room());
}

TEST(HandleList, MakingRoomCountsNothing) {
  HandleList list(1);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(list.make_room());
}

TEST(HandleList, ARankEndsTheRoutingOfOneDispatch) {
  HandleList list(8);
  const auto first = make_handle();
  const auto second = make_handle();
  for (const auto& [op, handle] : {std::pair{1U, first}, {2U, second}}) {
    ASSERT_TRUE(list.make_room());
    list.add(op, handle);
  }
  list.ended(2, 5);
  list.ended(3, 6);
  EXPECT_EQ(first->ended_by, -1);
  EXPECT_EQ(second->ended_by, 5);
}

// A released handle that an operation still uses is told, too; one that is gone is not looked for.
TEST(HandleList, HandlesThatAreGoneAreForgotten) {
  HandleList list(8);
  auto used = make_handle();
  ASSERT_TRUE(list.make_room());
  list.add(1, used);
  list.release();
  list.ended(1, 4);
  EXPECT_EQ(used->ended_by, 4);
  used.reset();
  list.ended(1, 4);
  EXPECT_TRUE(list.make_room());
  list.ended(1, 4);
}

}  // namespace
}  // namespace railhead::client
