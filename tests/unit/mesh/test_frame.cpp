#include <gtest/gtest.h>

#include "daemon/mesh/frame.hpp"

namespace railhead::mesh {
namespace {

std::span<const std::byte> view(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

Frame sample() {
  Frame frame;
  frame.kind = FrameKind::hello;
  frame.need = true;
  frame.number = 0x0123'4567'89ab'cdef;
  frame.from = random_host_id().value();
  frame.to = random_host_id().value();
  frame.text = "tcp://127.0.0.1:5";
  return frame;
}

TEST(Frame, RoundTrips) {
  const Frame frame = sample();
  const auto back = decode_frame(view(encode_frame(frame)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, frame.kind);
  EXPECT_EQ(back->version, kMeshProtocol);
  EXPECT_TRUE(back->need);
  EXPECT_EQ(back->number, frame.number);
  EXPECT_EQ(back->from, frame.from);
  EXPECT_EQ(back->to, frame.to);
  EXPECT_EQ(back->text, frame.text);
}

TEST(Frame, EveryTruncationIsRefused) {
  const std::string whole = encode_frame(sample());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string part = whole.substr(0, size);
    EXPECT_FALSE(decode_frame(view(part))) << size;
  }
  EXPECT_FALSE(decode_frame(view(whole + "x")));
}

TEST(Frame, UnknownKindAndMagicAreRefused) {
  std::string bytes = encode_frame(sample());
  bytes[6] = 0;
  EXPECT_FALSE(decode_frame(view(bytes)));
  bytes[6] = 99;
  EXPECT_FALSE(decode_frame(view(bytes)));
  bytes = encode_frame(sample());
  bytes[0] = 'x';
  EXPECT_FALSE(decode_frame(view(bytes)));
}

TEST(Frame, OtherVersionIsReadOnlyFarEnoughToNameIt) {
  std::string bytes = encode_frame(sample());
  bytes[4] = 9;
  bytes[6] = 99;
  const auto frame = decode_frame(view(bytes));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->version, 9);
}

TEST(Frame, TextIsCutAtTheLimitAndCleaned) {
  Frame frame = sample();
  frame.text = "line\n" + std::string(2 * kMaxFrameText, 'a');
  const std::string bytes = encode_frame(frame);
  const auto back = decode_frame(view(bytes));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->text.size(), kMaxFrameText);
  EXPECT_TRUE(back->text.starts_with("line?a"));
}

}  // namespace
}  // namespace railhead::mesh
