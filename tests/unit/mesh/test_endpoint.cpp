#include <gtest/gtest.h>

#include "daemon/mesh/endpoint.hpp"

namespace railhead::mesh {
namespace {

TEST(Endpoint, RoundTrips) {
  for (const char* text :
       {"tcp://127.0.0.1:0", "tcp://[::1]:65535", "tcp://node-3.cluster:5000", "tcp://*:1", "tcp://eth0:0"}) {
    const auto parsed = parse_endpoint(text, "mesh.bind");
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->text(), text);
  }
}

TEST(Endpoint, RefusesWhatZeroMqWouldMisread) {
  for (const char* text : {"", "tcp://", "127.0.0.1:1", "ipc:///tmp/x", "tcp://127.0.0.1",
                           "tcp://127.0.0.1:", "tcp://:1", "tcp://::1:5", "tcp://[127.0.0.1]:5", "tcp://a:65536",
                           "tcp://a:-1", "tcp://a:1x", "tcp://a b:1", "tcp://10.0.0.1:0;10.0.0.2:5", "tcp://[::1:5"}) {
    const auto parsed = parse_endpoint(text, "mesh.bind");
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message().find("mesh.bind"), std::string::npos);
  }
}

TEST(Endpoint, KnowsLoopbackAndWildcard) {
  const auto of = [](const char* text) { return parse_endpoint(text, "x").value(); };
  for (const char* text : {"tcp://127.0.0.1:1", "tcp://127.9.9.9:1", "tcp://[::1]:1", "tcp://localhost:1"}) {
    EXPECT_TRUE(of(text).is_loopback()) << text;
  }
  for (const char* text : {"tcp://128.0.0.1:1", "tcp://[::]:1", "tcp://0.0.0.0:1", "tcp://*:1", "tcp://lo:1",
                           "tcp://127.0.0.1.example.org:1"}) {
    EXPECT_FALSE(of(text).is_loopback()) << text;
  }
  for (const char* text : {"tcp://0.0.0.0:1", "tcp://[::]:1", "tcp://*:1"}) EXPECT_TRUE(of(text).is_wildcard()) << text;
  EXPECT_FALSE(of("tcp://10.0.0.1:1").is_wildcard());
  EXPECT_TRUE(of("tcp://10.0.0.1:1").is_v4_literal());
  EXPECT_FALSE(of("tcp://host:1").is_v4_literal());
}

}  // namespace
}  // namespace railhead::mesh
