// Every decoder of bytes that another process or host wrote: an answer or an error, nothing else.
#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "daemon/group/messages.hpp"
#include "daemon/group/unique_id.hpp"
#include "ipc/wire.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace railhead::test {
namespace {

std::vector<daemon::GroupMessage> samples() {
  using namespace daemon;
  ipc::GroupParams params;
  params.ranks = 3;
  params.expert_rank = {0, 1, 2, 0};
  WireMessage wire;
  wire.offer.fabric_address = "address";
  wire.offer.rings = {{0, 1, 2, 3, 4, {5, 6}}, {1, 2, 3, 4, 5, {6, 7}}};
  return {
      {GroupKey{1}, JoinMessage{1, {}, "tcp://10.0.0.1:5", params}},
      {GroupKey{2}, MissingMessage{{1, 2, 3}}},
      {GroupKey{3}, MapMessage{9, {{{}, "a"}, {{}, "b"}}, {0, 1, 1}}},
      {GroupKey{4}, wire},
      {GroupKey{5}, FrozenMessage{{Code::aborted, "why"}, 1, 2}},
      {GroupKey{6}, LeftMessage{1, 2, "reason"}},
      {GroupKey{7}, QuiescedMessage{{{1, 2}, {3, 4}}}},
      {GroupKey{8}, RefusedMessage{{Code::mismatch, "differs"}}},
  };
}

TEST(Fuzz, MeshMessages) {
  Fuzz fuzz("mesh messages", 20000);
  const auto all = samples();
  std::vector<std::vector<std::byte>> good;
  for (const auto& message : all) good.push_back(daemon::encode(message));
  int decoded = 0;
  for (int i = 0; i < fuzz.rounds(); ++i) {
    auto bytes = i % 8 == 0 ? fuzz.noise(400) : good[fuzz.below(good.size())];
    fuzz.damage(bytes.data(), bytes.size());
    const auto message = daemon::decode(bytes);
    if (!message) {
      ASSERT_EQ(message.error().code(), Code::protocol);
      continue;
    }
    ++decoded;
    // What was understood can be said again.
    const auto again = daemon::decode(daemon::encode(*message));
    ASSERT_TRUE(again) << again.error().message();
    if (const auto* map = std::get_if<daemon::MapMessage>(&message->body)) {
      for (const auto domain : map->domain_of_rank) ASSERT_LT(domain, map->daemons.size());
    }
  }
  EXPECT_GT(decoded, 0) << "all damage was fatal: nothing behind the framing was reached";
}

TEST(Fuzz, UniqueIds) {
  Fuzz fuzz("unique ids", 50000);
  daemon::UniqueId id;
  id.endpoint = "tcp://10.0.0.1:5555";
  const auto good = *daemon::encode(id);
  for (int i = 0; i < fuzz.rounds(); ++i) {
    auto bytes = i % 2 == 0 ? fuzz.noise(300) : std::vector<std::byte>(256);
    if (i % 2 == 1) std::memcpy(bytes.data(), good.data(), good.size());
    fuzz.damage(bytes.data(), i % 2 == 1 ? good.size() : bytes.size());
    const std::span<const std::uint8_t> view(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    const auto decoded = daemon::decode_unique_id(view);
    if (decoded) {
      ASSERT_LE(decoded->endpoint.size(), 256U);
    }
  }
}

TEST(Fuzz, ChunkHeaders) {
  Fuzz fuzz("chunk headers", 200000);
  for (int i = 0; i < fuzz.rounds(); ++i) {
    ipc::ChunkHeader header{};
    header.magic = ipc::kChunkMagic;
    header.version = ipc::kWireVersion;
    header.records = 3;
    header.stride = 128;
    header.bytes = sizeof(header) + 3 * 128;
    auto* const bytes = reinterpret_cast<std::byte*>(&header);
    fuzz.damage(bytes, sizeof(header));
    if (i % 2 == 0) ipc::seal(header);  // a sender that means it
    if (!ipc::check(header, 4096)) continue;
    ASSERT_GT(header.records, 0U);
    ASSERT_LE(sizeof(header) + std::uint64_t{header.records} * header.stride, 4096U);
  }
}

}  // namespace
}  // namespace railhead::test
