#include <gtest/gtest.h>

#include "tools/epctl/table.hpp"

namespace railhead::epctl {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(format_table({"NAME", "N"}, {{"a", "1"}, {"longer", "100"}}),
            "NAME      N\n"
            "a         1\n"
            "longer  100\n");
}

TEST(Table, LettersOfSeveralBytesCountOnce) {
  EXPECT_EQ(format_table({"JOB", "STATE"}, {{"\xc3\xa4\xc3\xb6\xc3\xbc", "open"}, {"aou", "open"}}),
            "JOB  STATE\n"
            "\xc3\xa4\xc3\xb6\xc3\xbc  open\n"
            "aou  open\n");
}

TEST(Table, ADashLeavesAColumnNumeric) {
  EXPECT_EQ(format_table({"OPS", "X"}, {{"-", "x"}, {"12", "y"}}), "OPS  X\n  -  x\n 12  y\n");
}

TEST(Table, ControlCharactersNeverReachTheTerminal) {
  EXPECT_EQ(printable("a\x1b[31m\n\x7f"), "a?[31m??");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31m"),
            "a?31m");
  EXPECT_EQ(printable("\xc3\xa4"), "\xc3\xa4");
}

TEST(Table, BytesAndTimesReadWell) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(duration_text(0.25), "0.2 s");
  EXPECT_EQ(duration_text(75.2), "1 min 15 s");
  EXPECT_EQ(duration_text(7260), "2 h 1 min");
  EXPECT_EQ(duration_text(90'061), "1 d 1 h");
}

}  // namespace
}  // namespace railhead::epctl
