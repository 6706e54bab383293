#include <gtest/gtest.h>

#include "daemon/fabric/expectations.hpp"

namespace railhead::fabric {
namespace {

using std::chrono::hours;
using std::chrono::steady_clock;

const Token kToken{1, 2, 3};

TEST(Expectations, TokenIsTakenOnce) {
  Expectations expected;
  ASSERT_TRUE(expected.add(PeerId{7}, kToken, steady_clock::now() + hours(1)));
  EXPECT_FALSE(expected.take(Token{9}));
  const auto entry = expected.take(kToken);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->peer, PeerId{7});
  EXPECT_FALSE(expected.take(kToken));
  EXPECT_TRUE(expected.empty());
}

TEST(Expectations, ExpiredTokenIsNotTakenButListed) {
  Expectations expected;
  ASSERT_TRUE(expected.add(PeerId{7}, kToken, steady_clock::now() - hours(1)));
  EXPECT_FALSE(expected.take(kToken));
  const auto expired = expected.take_expired(steady_clock::now());
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].peer, PeerId{7});
  EXPECT_TRUE(expected.empty());
}

TEST(Expectations, CancelledTokenIsNotTaken) {
  Expectations expected;
  ASSERT_TRUE(expected.add(PeerId{7}, kToken, steady_clock::now() + hours(1)));
  expected.cancel(PeerId{8});
  EXPECT_FALSE(expected.empty());
  expected.cancel(PeerId{7});
  EXPECT_FALSE(expected.take(kToken));
}

}  // namespace
}  // namespace railhead::fabric
