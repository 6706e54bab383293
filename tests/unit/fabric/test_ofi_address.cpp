#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "daemon/fabric/ofi_address.hpp"

namespace railhead::fabric {
namespace {

using testing::HasSubstr;

std::string round_trip(const std::string& provider, const std::string& text, bool is_socket) {
  const auto bytes = parse_address(provider, text);
  if (!bytes) return bytes.error().to_string();
  return format_address(provider, bytes->data(), bytes->size(), is_socket);
}

TEST(OfiAddress, TextAndBytesAgree) {
  for (const char* text : {"tcp:127.0.0.1:4000", "tcp:[::1]:4000", "tcp:[2001:db8::17]:65535"}) {
    EXPECT_EQ(round_trip("tcp", text, true), text);
  }
  EXPECT_EQ(round_trip("tcp;ofi_rxm", "tcp;ofi_rxm:10.0.0.1:1", true), "tcp;ofi_rxm:10.0.0.1:1");
  EXPECT_EQ(round_trip("efa", "efa:raw:0a1bff", false), "efa:raw:0a1bff");
}

TEST(OfiAddress, OtherProviderIsNamed) {
  const auto bytes = parse_address("tcp", "verbs:127.0.0.1:4000");
  ASSERT_FALSE(bytes);
  EXPECT_THAT(bytes.error().message(), HasSubstr("verbs:127.0.0.1:4000"));
  EXPECT_THAT(bytes.error().message(), HasSubstr("provider tcp"));
}

TEST(OfiAddress, BrokenTextIsRefused) {
  for (const char* text : {"", "tcp", "tcp:", "tcp:127.0.0.1", "tcp:127.0.0.1:", "tcp:127.0.0.1:0",
                           "tcp:127.0.0.1:65536", "tcp:127.0.0.1:4x", "tcp:300.0.0.1:1", "tcp:::1:4000",
                           "tcp:[::1:4000", "tcp:[]:1", "tcp:raw:", "tcp:raw:abc", "tcp:raw:zz", "tcp:host.name:1"}) {
    const auto bytes = parse_address("tcp", text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().code(), Code::invalid_argument) << text;
  }
}

TEST(OfiAddress, BindIsAnAddressOrAnInterface) {
  EXPECT_EQ(*resolve_bind("10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(*resolve_bind("::1"), "::1");
  EXPECT_EQ(*resolve_bind("lo"), "127.0.0.1");
  EXPECT_EQ(*resolve_bind(""), "");
  EXPECT_FALSE(resolve_bind("nosuchif0"));
}

}  // namespace
}  // namespace railhead::fabric
