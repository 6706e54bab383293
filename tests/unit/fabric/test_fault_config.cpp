#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/fabric/fault_config.hpp"

namespace railhead::fabric {
namespace {

using testing::HasSubstr;

TEST(FaultConfig, ReadsEveryKey) {
  const auto config =
      parse_faults("seed=9,delay=16,reorder=8,dup=0.05,resend=0.5,fail_nth=100,drop_after=200,slow=65536");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->seed, 9u);
  EXPECT_EQ(config->delay, 16u);
  EXPECT_EQ(config->reorder, 8u);
  EXPECT_DOUBLE_EQ(config->dup, 0.05);
  EXPECT_DOUBLE_EQ(config->resend, 0.5);
  EXPECT_EQ(config->fail_nth, 100u);
  EXPECT_EQ(config->drop_after, 200u);
  EXPECT_EQ(config->slow, 65536u);
  EXPECT_EQ(parse_faults(config->to_string())->to_string(), config->to_string());
}

TEST(FaultConfig, EmptyTextInjectsNothing) {
  ASSERT_TRUE(parse_faults(""));
  EXPECT_FALSE(parse_faults("")->any());
  EXPECT_FALSE(parse_faults("seed=3")->any());
  EXPECT_TRUE(parse_faults("slow=1")->any());
}

TEST(FaultConfig, ErrorsNameTheItem) {
  for (const char* text : {"delay", "delay=x", "delay=-1", "delay=257", "dup=1.5", "dup=nan", "dup=", "speed=3",
                           "delay=1,", "delay=1,,dup=0", "delay=1 ,dup=0"}) {
    const auto config = parse_faults(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code(), Code::invalid_argument);
    EXPECT_THAT(config.error().message(), HasSubstr("known are seed, delay")) << text;
  }
  EXPECT_THAT(parse_faults("seed=1,speed=3").error().message(), HasSubstr("'speed=3'"));
  EXPECT_THAT(parse_faults("delay=257").error().message(), HasSubstr("256"));
}

}  // namespace
}  // namespace railhead::fabric
