#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/fabric/factory.hpp"

namespace railhead::fabric {
namespace {

using testing::HasSubstr;

TEST(Factory, AbsentProviderSaysWhatThereIsAndWhyNot) {
  const auto made = make_fabric({.provider = "nosuch", .endpoint = "msg", .bind = "127.0.0.1"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::unavailable);
  EXPECT_THAT(made.error().message(), HasSubstr("'nosuch' with endpoint msg on 127.0.0.1"));
  EXPECT_THAT(made.error().message(), HasSubstr("tcp (msg): not asked for, would do"));
}

TEST(Factory, ProviderWithoutTheEndpointSaysSo) {
  const auto made = make_fabric({.provider = "udp", .endpoint = "msg", .bind = "127.0.0.1"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::unavailable);
  EXPECT_THAT(made.error().message(), HasSubstr("udp (dgram): is of type dgram"));
}

TEST(Factory, BadValuesAreNamed) {
  EXPECT_THAT(make_fabric({.endpoint = "dgram"}).error().message(), HasSubstr("'dgram'"));
  EXPECT_THAT(make_fabric({.bind = "nosuchif0"}).error().message(), HasSubstr("'nosuchif0'"));
  EXPECT_THAT(make_fabric({.bind = "127.0.0.1", .faults = "dleay=3"}).error().message(), HasSubstr("'dleay=3'"));
  EXPECT_THAT(make_fabric({.provider = "loopback"}).error().message(), HasSubstr("LoopbackHub"));
}

TEST(Factory, BindsToAnInterfaceByName) {
  const auto made = make_fabric({.bind = "lo"});
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_THAT((*made)->address(), HasSubstr("tcp:127.0.0.1:"));
}

}  // namespace
}  // namespace railhead::fabric
