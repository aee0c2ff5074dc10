#include "analyzer/driver/suppress.hpp"

#include <gtest/gtest.h>

namespace mp::lint {
namespace {

constexpr Rule kNorm{.id = "MP405", .name = "half-norm-stats", .confirmed_by = ""};

// Line 2 of the text: is a finding of MP405 there silenced?
bool silenced(const std::string& text, const char* file = "/a.cu") {
    Sources sources;
    sources.add(file, text);
    return is_suppressed(sources, file, 2, kNorm);
}

TEST(Suppress, ACommentOnTheLineSilencesIt) {
    EXPECT_TRUE(silenced("\nx; // mp-lint: disable=MP405 measured, fine\n"));
    EXPECT_TRUE(silenced("\nx; /* mp-lint: disable=half-norm-stats */\n"));
    EXPECT_TRUE(silenced("\nx; // why; mp-lint: disable=MP401, MP405 both\n"));
    EXPECT_TRUE(silenced("\nx; // mp-lint: disable=MP4\n"));
    EXPECT_TRUE(silenced("\nx; // NOLINT(MP405)\n"));
    EXPECT_TRUE(silenced("\nx; // NOLINT(bugprone-foo, mp405): why\n"));
}

TEST(Suppress, ACommentAloneOnTheLineBeforeSilencesTheNext) {
    EXPECT_TRUE(silenced("  // mp-lint: disable=MP405 why\nx;\n"));
    EXPECT_FALSE(silenced("y; // mp-lint: disable=MP405\nx;\n")) << "that one is y's";
    EXPECT_TRUE(silenced("y; // mp-lint: disable-next-line=MP405\nx;\n"));
    EXPECT_TRUE(silenced("// NOLINTNEXTLINE(MP405)\nx;\n"));
    EXPECT_FALSE(silenced("// NOLINT(MP405)\nx;\n"));
}

TEST(Suppress, OtherRulesAndOtherToolsSilenceNothing) {
    EXPECT_FALSE(silenced("\nx; // mp-lint: disable=MP401\n"));
    EXPECT_FALSE(silenced("\nx; // MP405 is fine here\n"));
    EXPECT_FALSE(silenced("\nx; // NOLINT\n"));
    EXPECT_FALSE(silenced("\nx; // NOLINT(bugprone-foo) MP405\n"));
    EXPECT_FALSE(silenced("\nx; // mp-lint: disable= MP401 like MP405\n"))
        << "a reason is not a rule";
    EXPECT_FALSE(silenced("\nx; // mp-lint: enable=MP405\n"));
    EXPECT_FALSE(silenced("\nx; // noqa: MP405\n"));
}

TEST(Suppress, OnlyCommentsCount) {
    EXPECT_FALSE(silenced("\nputs(\"// mp-lint: disable=MP405\");\n"));
    EXPECT_TRUE(silenced("\nputs(\"\\\"//\"); // mp-lint: disable=MP405\n"));
    EXPECT_TRUE(silenced("\nint n = 1'000; // mp-lint: disable=MP405\n"));
    EXPECT_TRUE(silenced("\nchar c = '\"'; // mp-lint: disable=MP405\n"));
}

TEST(Suppress, PythonHasItsOwnComments) {
    EXPECT_TRUE(silenced("\nx = 1  # noqa: MP405\n", "/a.py"));
    EXPECT_TRUE(silenced("# mp-lint: disable=MP405 why\nx = 1\n", "/a.py"));
    EXPECT_FALSE(silenced("\nx = '# noqa: MP405'\n", "/a.py"));
}

}  // namespace
}  // namespace mp::lint
