#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "client/peer_arenas.hpp"

namespace railhead::client {
namespace {

using ipc::Access;
using ipc::SpanRef;
using testing::HasSubstr;

// Segment 0 may be written, segment 1 only read, others do not exist.
class PeerArenasTest : public testing::Test {
 protected:
  Result<ipc::Segment> fetch(std::uint32_t /*local*/, std::uint8_t id) {
    ++fetched_;
    if (id > 1) return fail(Code::protocol, "no such segment");
    auto made = ipc::Segment::create("peer", kBytes);
    if (!made) return made;
    ipc::UniqueFd fd(::dup(made->fd()));
    return ipc::Segment::map(std::move(fd), made->bytes(), id == 0 ? Access::read_write : Access::read_only,
                             ipc::Prefault::yes);
  }

  static constexpr std::uint64_t kBytes = 8192;
  int fetched_ = 0;
  PeerArenas arenas_{2, [this](std::uint32_t local, std::uint8_t id) { return fetch(local, id); }};
};

TEST_F(PeerArenasTest, MapsASegmentOnceAndFindsPlacesInIt) {
  const auto first = arenas_.resolve(1, SpanRef::make(0, 64), 100, Access::read_write);
  const auto second = arenas_.resolve(1, SpanRef::make(0, 128), kBytes - 128, Access::read_write);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*second - *first, 64);
  EXPECT_EQ(fetched_, 1);
  **first = std::byte{1};
}

TEST_F(PeerArenasTest, RefusesWhatLiesOutside) {
  EXPECT_FALSE(arenas_.resolve(0, SpanRef::make(0, 64), kBytes, Access::read_only));
  EXPECT_FALSE(arenas_.resolve(0, SpanRef::make(0, kBytes + 64), 0, Access::read_only));
  EXPECT_FALSE(arenas_.resolve(0, SpanRef::make(0, 0), UINT64_MAX, Access::read_only));
  EXPECT_FALSE(arenas_.resolve(0, SpanRef::make(ipc::kMaxSegments, 0), 1, Access::read_only));
  EXPECT_FALSE(arenas_.resolve(0, SpanRef::make(2, 0), 1, Access::read_only));
}

TEST_F(PeerArenasTest, ASegmentThatPeersMayOnlyReadIsNoPlaceForRows) {
  EXPECT_TRUE(arenas_.resolve(0, SpanRef::make(1, 0), kBytes, Access::read_only));
  const auto place = arenas_.resolve(0, SpanRef::make(1, 0), 64, Access::read_write);
  ASSERT_FALSE(place);
  EXPECT_EQ(place.error().code(), Code::protocol);
  EXPECT_THAT(place.error().message(), HasSubstr("may only read"));
}

}  // namespace
}  // namespace railhead::client
