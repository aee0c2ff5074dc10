#include "analyzer/report/display.hpp"

#include <gtest/gtest.h>

namespace mp::lint {
namespace {

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

TEST(Display, PagesLoseTheirTestMarks) {
    EXPECT_EQ(page_for_reading("x += y;  // expect: MP401 error\nz;\n"), "x += y;  // <- MP401\nz;\n");
    EXPECT_EQ(page_for_reading("x  // expect: MP401"), "x  // <- MP401");
    EXPECT_EQ(page_for_reading("nothing"), "nothing");
}

}  // namespace
}  // namespace mp::lint
