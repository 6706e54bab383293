#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/unit/bench/temp_file.hpp"
#include "tools/ep-bench/routing.hpp"

namespace railhead::bench {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kTwoLayers =
    "# model=example\n"
    "# routed_experts=8\n"
    "# top_k=2\n"
    "req,token,layer,e0,e1,w0,w1\n"
    "a,0,0,1,2,0.75,0.25\n"
    "a,0,3,7,6,0.5,0.5\n"
    "a,1,0,3,-1,1,0\r\n"
    "\n"
    "a,1,3,5,4,0.125,0.875\n";

std::string error_of(const std::string& text, const RoutingOptions& options = {}) {
  const TempFile file(text);
  const auto source = open_routing("trace:" + file.path(), options);
  if (source) return "no error";
  EXPECT_THAT(source.error().message(), HasSubstr(file.path()));
  return source.error().message().substr(file.path().size());
}

TEST(TraceRouting, TakesShapeFromTheFileAndAlternatesLayers) {
  const TempFile file(kTwoLayers);
  const auto source = open_routing("trace:" + file.path(), {});
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ((*source)->experts(), 8u);
  EXPECT_EQ((*source)->top_k(), 2u);

  const Routing even = (*source)->draw(0, 0, 3);  // starts at one of the two tokens and wraps
  EXPECT_THAT(even.ids, AnyOf(ElementsAre(1, 2, 3, -1, 1, 2), ElementsAre(3, -1, 1, 2, 3, -1)));
  const Routing odd = (*source)->draw(0, 1, 2);
  EXPECT_THAT(odd.ids, AnyOf(ElementsAre(7, 6, 5, 4), ElementsAre(5, 4, 7, 6)));
  EXPECT_THAT(odd.weights, AnyOf(ElementsAre(.5f, .5f, .125f, .875f), ElementsAre(.125f, .875f, .5f, .5f)));
  EXPECT_EQ((*source)->draw(0, 0, 3).ids, even.ids);
}

TEST(TraceRouting, GzipAndPlainAreTheSame) {
  const TempFile plain(kTwoLayers);
  const TempFile packed("");
  packed.replace_with_gzip(kTwoLayers);
  const auto a = open_routing("trace:" + plain.path(), {8, 2, 5});
  const auto b = open_routing("trace:" + packed.path(), {8, 2, 5});
  ASSERT_TRUE(a && b);
  EXPECT_EQ((*a)->draw(3, 4, 20).ids, (*b)->draw(3, 4, 20).ids);
}

TEST(TraceRouting, MissingWeightsAreMadeUpAndNormalised) {
  const TempFile file("# routed_experts=8\nreq,token,layer,e0,e1\na,0,0,1,2\n");
  const auto source = open_routing("trace:" + file.path(), {});
  ASSERT_TRUE(source) << source.error().message();
  const Routing routing = (*source)->draw(0, 0, 1);
  EXPECT_NEAR(routing.weights[0] + routing.weights[1], 1, 1e-6);
  EXPECT_NE(routing.weights[0], routing.weights[1]);
}

TEST(TraceRouting, OptionsMustAgreeWithTheFile) {
  EXPECT_THAT(error_of(kTwoLayers, {16, 2, 1}), HasSubstr(":2: routed_experts is 8 in the trace, but 16 was asked"));
  EXPECT_THAT(error_of(kTwoLayers, {8, 4, 1}), HasSubstr(":3: top_k is 2 in the trace, but 4 was asked"));
  const std::string headless = "req,token,layer,e0\na,0,0,1\n";
  EXPECT_THAT(error_of(headless), HasSubstr(":1: no line '# routed_experts=N'"));
  EXPECT_EQ(error_of(headless, {4, 0, 1}), "no error");
  EXPECT_THAT(error_of("# top_k=2\n" + headless, {4, 0, 1}), HasSubstr(":2: top_k is 1 in the trace, but 2 was"));
}

TEST(TraceRouting, MalformedLinesAreNamedByNumber) {
  const std::string head = "# routed_experts=4\nreq,token,layer,e0,e1,w0,w1\n";
  EXPECT_THAT(error_of(head + "a,0,0,1,2,1,0\na,1,0,1,2\n"), HasSubstr(":4: 5 fields, the header has 7"));
  EXPECT_THAT(error_of(head + "a,0,0,1,4,1,0\n"), HasSubstr(":3: e1 is '4', not an expert from 0 to 3 or -1"));
  EXPECT_THAT(error_of(head + "a,0,0,-2,1,1,0\n"), HasSubstr(":3: e0 is '-2'"));
  EXPECT_THAT(error_of(head + "a,0,0,,1,1,0\n"), HasSubstr(":3: e0 is ''"));
  EXPECT_THAT(error_of(head + "a,0,x,0,1,1,0\n"), HasSubstr(":3: layer 'x' is not a number"));
  EXPECT_THAT(error_of(head + "a,0,0,0,1,1,nan\n"), HasSubstr(":3: w1 is 'nan', not a finite number"));
  EXPECT_THAT(error_of(head), HasSubstr("no token line"));
  EXPECT_THAT(error_of(""), HasSubstr("header line req,token,layer,e0.. is missing"));
  EXPECT_THAT(error_of("# routed_experts=zero\n"), HasSubstr(":1: routed_experts=zero: not a positive number"));
  for (const char* header : {"req,token,layer", "req,token,e0", "req,token,layer,e0,e1,w0", "req,token,layer,e0,x"}) {
    EXPECT_THAT(error_of("# routed_experts=4\n" + std::string(header) + "\n"), HasSubstr(":2: the header must be"));
  }
}

TEST(TraceRouting, DamagedGzipIsAnError) {
  const TempFile file("");
  std::string text(kTwoLayers);
  for (int i = 0; i < 2000; ++i) text += "b," + std::to_string(i * 7919 % 10007) + ",0,1,2,0.5,0.5\n";
  file.replace_with_gzip(text);
  std::ifstream in(file.path(), std::ios::binary);
  const std::string packed{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(packed.size(), 200u);
  EXPECT_THAT(error_of(packed.substr(0, packed.size() / 2)), HasSubstr("damaged gzip data"));
}

}  // namespace
}  // namespace railhead::bench
