#include <gtest/gtest.h>

#include <array>

#include "daemon/fabric/event_queue.hpp"

namespace railhead::fabric {
namespace {

TEST(EventQueue, GivesEventsInOrderAndKeepsTheRest) {
  EventQueue queue;
  queue.write_done(PeerId{1}, 10);
  queue.immediate(PeerId{2}, 20);
  queue.peer_down(PeerId{3}, Token{}, {Code::timeout, "late"});
  std::array<Event, 2> out;
  ASSERT_EQ(queue.take(out), 2u);
  EXPECT_EQ(out[0].context, 10u);
  EXPECT_EQ(out[1].immediate, 20u);
  ASSERT_EQ(queue.take(out), 1u);
  EXPECT_EQ(out[0].status.message(), "late");
  EXPECT_EQ(queue.take(out), 0u);
}

TEST(EventQueue, ForgetsAPeerButNotTheEndsOfItsWrites) {
  EventQueue queue;
  queue.immediate(PeerId{1}, 1);
  queue.write_done(PeerId{1}, 2);
  queue.write_failed(PeerId{1}, 3, {Code::peer_lost, "gone"});
  queue.peer_down(PeerId{1}, Token{}, {});
  queue.immediate(PeerId{2}, 4);
  queue.forget_peer(PeerId{1});
  std::array<Event, 8> out;
  ASSERT_EQ(queue.take(out), 3u);
  EXPECT_EQ(out[0].context, 2u);
  EXPECT_EQ(out[1].context, 3u);
  EXPECT_EQ(out[2].immediate, 4u);
}

}  // namespace
}  // namespace railhead::fabric
