#include <gtest/gtest.h>

#include <random>

#include "daemon/group/unique_id.hpp"

namespace railhead::daemon {
namespace {

UniqueId sample(const std::string& endpoint) {
  UniqueId id;
  for (std::size_t i = 0; i < 16; ++i) {
    id.key[i] = static_cast<std::uint8_t>(i);
    id.secret[i] = static_cast<std::uint8_t>(i + 50);
    id.host.bytes[i] = static_cast<std::uint8_t>(i + 100);
  }
  id.endpoint = endpoint;
  return id;
}

std::vector<std::uint8_t> padded(const UniqueId& id) {
  std::vector<std::uint8_t> bytes = *encode(id);
  bytes.resize(256);
  return bytes;
}

TEST(UniqueId, ComesBackWithTrailingZeros) {
  const UniqueId id = sample("tcp://[fe80::1]:5555");
  const auto back = decode_unique_id(padded(id));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->key, id.key);
  EXPECT_EQ(back->secret, id.secret);
  EXPECT_EQ(back->host, id.host);
  EXPECT_EQ(back->endpoint, id.endpoint);
}

TEST(UniqueId, EveryChangedBitIsFound) {
  const std::vector<std::uint8_t> good = *encode(sample("tcp://10.0.0.1:1"));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_FALSE(decode_unique_id(bad)) << "bit " << bit;
  }
}

TEST(UniqueId, EveryCutIsFound) {
  const std::vector<std::uint8_t> good = *encode(sample("tcp://10.0.0.1:1"));
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(decode_unique_id(std::span(good.data(), n))) << n;
}

TEST(UniqueId, AnEndpointThatDoesNotFitIsRefusedWithWhatToDo) {
  EXPECT_TRUE(encode(sample(std::string(199, 'x'))));
  const auto refused = encode(sample(std::string(200, 'x')));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::limit_exceeded);
  EXPECT_NE(refused.error().message().find("mesh.advertise"), std::string::npos);
}

TEST(UniqueId, NamesForPeople) {
  EXPECT_EQ(short_name({0x3f, 0x2a, 0x91, 0xc0, 1}), "3f2a91c0");
  EXPECT_NE(*random_bytes(), *random_bytes());
}

}  // namespace
}  // namespace railhead::daemon
