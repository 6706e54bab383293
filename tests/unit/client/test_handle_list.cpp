#include <gtest/gtest.h>

#include <memory>

#include "client/handle_list.hpp"

namespace railhead::client {
namespace {

std::shared_ptr<Handle> make_handle() {
  auto arena = std::make_shared<Arena>([](auto&&...) { return Result<void>(); });
  return std::make_shared<Handle>(std::move(arena), std::make_shared<SpareTables>());
}

void add(HandleList& list, std::uint64_t op, const std::shared_ptr<Handle>& handle) {
  ASSERT_TRUE(list.full().ok());
  list.make_room();
  list.add(op, handle);
}

TEST(HandleList, RefusesOneMoreThanThereCanBe) {
  HandleList list(2);
  const auto first = make_handle();
  const auto second = make_handle();
  add(list, 1, first);
  list.make_room();
  list.make_room();
  EXPECT_TRUE(list.full().ok()) << "room alone counts nothing";
  add(list, 2, second);
  EXPECT_EQ(list.full().code(), Code::limit_exceeded);
  EXPECT_EQ(list.full().message(), "2 handles live, max_handles is 2: release some");
  list.release();
  EXPECT_TRUE(list.full().ok());
}

TEST(HandleList, ReleasesBeyondWhatLivesCountNothing) {
  HandleList list(1);
  list.release();
  EXPECT_TRUE(list.full().ok());
  const auto handle = make_handle();
  add(list, 1, handle);
  EXPECT_FALSE(list.full().ok());
}

TEST(HandleList, ARankEndsTheRoutingOfOneDispatch) {
  HandleList list(8);
  const auto first = make_handle();
  const auto second = make_handle();
  add(list, 1, first);
  add(list, 2, second);
  list.ended(2, 5);
  list.ended(3, 6);
  EXPECT_EQ(first->ended_by, -1);
  EXPECT_EQ(second->ended_by, 5);
}

// A released handle that an operation still uses is told, too; one that is gone is not looked for.
TEST(HandleList, HandlesThatAreGoneAreForgotten) {
  HandleList list(100);
  auto used = make_handle();
  add(list, 1, used);
  list.release();
  list.ended(1, 4);
  EXPECT_EQ(used->ended_by, 4);
  used.reset();
  list.ended(1, 4);
  for (std::uint64_t op = 2; op < 40; ++op) add(list, op, make_handle());
  list.ended(1, 4);
}

}  // namespace
}  // namespace railhead::client
