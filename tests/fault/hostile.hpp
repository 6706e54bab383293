// What hostile clients must not harm.
#pragma once

#include <string>

#include "tests/fault/world.hpp"

namespace railhead::test {

// A group of two good ranks, which must not notice anything.
class Hostile : public testing::Test {
 protected:
  void SetUp() override {
    world_.populate({0, 1});
    // Its arenas grow with the first rounds; what is counted later is counted after that.
    world_.expect_good(world_.everybody(), "round n=3");
    world_.expect_good(world_.everybody(), "round");
    base_ = world_.steady_holdings(0);
  }
  void TearDown() override {
    world_.expect_good(world_.everybody(), "round n=3");
    world_.expect_freed(0, base_);
    EXPECT_TRUE(world_.host(0).alive());
    EXPECT_TRUE(world_.host(1).alive());
  }
  [[nodiscard]] std::string socket() { return world_.host(0).socket(); }

  World world_{2};
  World::Holdings base_;
};

}  // namespace railhead::test
