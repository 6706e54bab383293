#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/log/log.hpp"

namespace railhead::log {
namespace {

Log make(const char* level, const char* target = "stderr") {
  LogOptions options;
  options.level = level;
  options.target = target;
  return Log::make(options).value();
}

TEST(Log, LineHoldsTheFieldsThatAreSet) {
  Fields fields;
  fields.group = "ab12";
  fields.session = 7;
  fields.rank = 0;
  fields.code = Code::rank_lost;
  EXPECT_EQ(line_text("rank is gone", fields), "rank is gone group=ab12 session=7 rank=0 code=rank_lost");
  EXPECT_EQ(line_text("plain", {}), "plain");
}

TEST(Log, OneMessageIsOneLine) {
  Fields fields;
  fields.job = "evil\n2026 epd error forged";
  const std::string line = line_text("a\r\nb", fields);
  EXPECT_EQ(line.find_first_of("\r\n"), std::string::npos);
}

TEST(Log, WritesToStandardErrorFromItsLevelOn) {
  const Log log = make("warning");
  testing::internal::CaptureStderr();
  log.info("not this");
  log.warning("but this");
  log.failure(Level::error, "and", {Code::timeout, "that {} %s"});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("not this"), std::string::npos);
  EXPECT_NE(text.find(" epd warning but this\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" epd error and: that {} %s code=timeout\n"), std::string::npos) << text;
}

TEST(Log, LevelChangesWhileRunning) {
  const Log log = make("error");
  const Log copy = log;
  testing::internal::CaptureStderr();
  EXPECT_TRUE(copy.set_level("debug").ok());
  log.debug("now");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("now"), std::string::npos);
  EXPECT_EQ(log.set_level("loud").code(), Code::invalid_argument);
}

TEST(Log, AutoTakesTheJournalOnlyWhereSystemdConnectedIt) {
  ::unsetenv("JOURNAL_STREAM");
  EXPECT_FALSE(make("info", "auto").uses_journal());
  ::setenv("JOURNAL_STREAM", "1:1", 1);  // inherited by someone whose standard error was redirected
  EXPECT_FALSE(make("info", "auto").uses_journal());
  struct stat info {};
  ASSERT_EQ(::fstat(STDERR_FILENO, &info), 0);
  ::setenv("JOURNAL_STREAM", (std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino)).c_str(), 1);
  EXPECT_TRUE(make("info", "auto").uses_journal());
  EXPECT_FALSE(make("info", "stderr").uses_journal());
  ::unsetenv("JOURNAL_STREAM");
  make("info", "journal").info("without a journal this is dropped, not fatal");
}

TEST(Log, BadSettingsAreNamed) {
  LogOptions options;
  options.target = "syslog";
  EXPECT_NE(Log::make(options).error().message().find("log.target is 'syslog'"), std::string::npos);
  options = {};
  options.level = "loud";
  EXPECT_NE(Log::make(options).error().message().find("log.level is 'loud'"), std::string::npos);
}

}  // namespace
}  // namespace railhead::log
