#include "analyzer/report/display.hpp"

#include <gtest/gtest.h>

namespace mp::lint {
namespace {

TEST(Display, InvalidUtf8IsSeen) {
    for (const char* bad : {"\xff", "\xc3\x28", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
        EXPECT_FALSE(decode_utf8(bad).valid) << bad;
    }
    EXPECT_EQ(decode_utf8("\xc3\xa9").value, 0xE9u);
    EXPECT_EQ(decode_utf8("\xf0\x9f\x98\x80").value, 0x1F600u);
}

TEST(Display, ControlCharactersAndReorderingAreSpelledOut) {
    EXPECT_EQ(escape_controls("a\x1b[2Jb"), "a\\x1b[2Jb");
    EXPECT_EQ(escape_controls("a\nb"), "a\\nb");
    EXPECT_EQ(escape_controls("a\u202eb"), "a\\u202eb");
    EXPECT_EQ(escape_controls("a\xc2\x9b"
                              "b"),
              "a\\x9bb")
        << "CSI as one C1 character";
    EXPECT_EQ(escape_controls("\xff"), "\\xff");
    EXPECT_EQ(escape_controls("größe 数"), "größe 数");
}

TEST(Display, ColumnsAreWhatTheEyeSees) {
    const DisplayLine tab = display_line("\tx");
    EXPECT_EQ(tab.text, "    x");
    EXPECT_EQ(tab.column_of_byte[1], 4u);
    EXPECT_EQ(display_line("ab\tx").column_of_byte[3], 4u);
    EXPECT_EQ(display_line("é=x").column_of_byte[3], 2u) << "two bytes, one column";
    EXPECT_EQ(display_line("数x").column_of_byte[3], 2u) << "three bytes, two columns";
    EXPECT_EQ(display_line("e\u0301x").column_of_byte[3], 1u) << "a combining mark has no column";
    EXPECT_EQ(display_line("\x1bx").column_of_byte[1], 4u) << "an escape is as wide as it is written";
    EXPECT_EQ(display_line("").column_of_byte.size(), 1u);
}

TEST(Display, PathsBelowTheBaseBecomeRelative) {
    EXPECT_EQ(relative_path("/a/b/c.cu", "/a/b"), "c.cu");
    EXPECT_EQ(relative_path("/a/b/c.cu", "/a/b/"), "c.cu");
    EXPECT_EQ(relative_path("/a/bc/d.cu", "/a/b"), "/a/bc/d.cu");
    EXPECT_EQ(relative_path("/a/b", "/"), "/a/b");
    EXPECT_EQ(relative_path("/a/b", ""), "/a/b");
}

TEST(Display, PagesLoseTheirTestMarks) {
    EXPECT_EQ(page_for_reading("x += y;  // expect: MP401 error\nz;\n"), "x += y;  // <- MP401\nz;\n");
    EXPECT_EQ(page_for_reading("x  // expect: MP401"), "x  // <- MP401");
    EXPECT_EQ(page_for_reading("nothing"), "nothing");
}

}  // namespace
}  // namespace mp::lint
