#include "analyzer/driver/output.hpp"

#include <gtest/gtest.h>

namespace mp::lint {
namespace {

TEST(OutputOption, FormatAndFile) {
    EXPECT_EQ(parse_output("json")->format, Format::json);
    EXPECT_EQ(parse_output("json")->file, "");
    EXPECT_EQ(parse_output("sarif=a=b.sarif")->file, "a=b.sarif");
    EXPECT_EQ(parse_output("text=-")->file, "");
    EXPECT_EQ(parse_output("markdown=$S")->format, Format::markdown);
    EXPECT_EQ(parse_output("gitlba").error().hint, "did you mean 'gitlab'?");
    EXPECT_EQ(parse_output("sarf").error().hint, "did you mean 'sarif'?");
    EXPECT_FALSE(parse_output("sarif="));
}

}  // namespace
}  // namespace mp::lint
