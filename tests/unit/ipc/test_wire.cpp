// Every field that all ranks must pass alike is compared, and the difference is said in words.
#include <gtest/gtest.h>

#include "ipc/wire.hpp"

namespace railhead::ipc {
namespace {

OpHeader usual() {
  OpHeader header{};
  header.op = 7;
  header.kind = static_cast<std::uint8_t>(OpKind::combine);
  header.layout = static_cast<std::uint8_t>(Layout::rank);
  header.element = 1;
  header.wire = 1;
  header.align = 1;
  header.side_bytes = 16;
  header.handle_op = 5;
  header.tokens = 9;
  return header;
}

struct Difference {
  void (*change)(OpHeader&);
  const char* says;
};

TEST(Disagreement, EveryFieldIsComparedAndNamed) {
  const Difference differences[] = {
      {[](OpHeader& h) { h.kind = static_cast<std::uint8_t>(OpKind::dispatch); }, "kind: combine and dispatch"},
      {[](OpHeader& h) { h.layout = static_cast<std::uint8_t>(Layout::expert); }, "layout: rank and expert"},
      {[](OpHeader& h) { h.element = 0; }, "element type: bf16 and u8"},
      {[](OpHeader& h) { h.element = 2; }, "element type: bf16 and fp16"},
      {[](OpHeader& h) { h.wire = 3; }, "wire type: bf16 and fp32"},
      {[](OpHeader& h) { h.flags = kFlagWeighted; }, "weighted: no and yes"},
      {[](OpHeader& h) { h.flags = kFlagCached; }, "cached: no and yes"},
      {[](OpHeader& h) { h.flags = 4; }, "flags: 0 and 4"},
      {[](OpHeader& h) { h.align = 4; }, "alignment: 1 and 4"},
      {[](OpHeader& h) { h.side_bytes = 0; }, "side bytes: 16 and 0"},
      {[](OpHeader& h) { h.handle_op = 6; }, "handle: of op 5 and of op 6"},
      {[](OpHeader& h) { h.handle_op = 0; }, "handle: of op 5 and none"},
  };
  for (const Difference& d : differences) {
    OpHeader other = usual();
    d.change(other);
    EXPECT_EQ(disagreement(usual(), other), d.says);
  }
}

// Two flags at once, and a flag with what follows from it: the flag is the reason.
TEST(Disagreement, TheFlagIsNamedBeforeTheHandle) {
  OpHeader other = usual();
  other.flags = kFlagCached | kFlagWeighted;
  other.handle_op = 0;
  EXPECT_EQ(disagreement(usual(), other), "cached: no and yes");
}

TEST(Disagreement, NumbersOutsideTheNamesAreNumbers) {
  OpHeader other = usual();
  other.element = 200;
  EXPECT_EQ(disagreement(usual(), other), "element type: bf16 and 200");
  other = usual();
  other.layout = 2;
  EXPECT_EQ(disagreement(usual(), other), "layout: rank and 2");
}

TEST(Disagreement, WhatIsARanksOwnIsNotCompared) {
  OpHeader other = usual();
  other.op = 8;
  other.tokens = 10;
  other.release_count = 1;
  other.releases[0] = 3;
  other.rows_span = other.meta_span = other.span_rows = other.called_ns = 11;
  EXPECT_EQ(disagreement(usual(), other), "");
}

}  // namespace
}  // namespace railhead::ipc
