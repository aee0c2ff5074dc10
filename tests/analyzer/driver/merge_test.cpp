#include "analyzer/driver/merge.hpp"

#include <gtest/gtest.h>

namespace mp::lint {
namespace {

Finding finding(const char* file, std::uint32_t line, const char* function, const char* message = "m") {
    return {.rule = "MP401",
            .severity = Severity::error,
            .span = {.file = Symbol(file), .line = line, .column = 1},
            .message = message,
            .fix = {},
            .notes = {{.span = {}, .text = std::string("in ") + function}},
            .function = Symbol(function)};
}

TEST(Merge, InstantiationsOfOnePlaceAreOneFinding) {
    const Findings out =
        merge_findings({finding("/p/a.cu", 3, "f<__half>"), finding("/p/a.cu", 3, "f<__nv_bfloat16>"),
                        finding("/p/a.cu", 3, "f<c10::Half>")},
                       "/p");
    ASSERT_EQ(out.size(), 1u);
    ASSERT_EQ(out[0].notes.size(), 2u);
    EXPECT_EQ(out[0].notes[0].text, "in f<__half>");
    EXPECT_EQ(out[0].notes[1].text, "and 2 more instantiations");
}

TEST(Merge, TheSameFunctionInSeveralUnitsIsNotAnotherInstantiation) {
    const Findings out = merge_findings(
        {finding("/p/a.h", 3, "f"), finding("a.h", 3, "f"), finding("/p/x/../a.h", 3, "f")}, "/p");
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].notes.size(), 1u);
    EXPECT_EQ(out[0].span.file.str(), "/p/a.h");
}

TEST(Merge, EditsAreOfTheSameFilesAsFindings) {
    Finding f = finding("x/../a.py", 3, "f");
    f.edits = {{.at = {.file = Symbol("x/../a.py"), .line = 3}, .text = "t"}};
    const Findings out = merge_findings({f}, "/p");
    EXPECT_EQ(out[0].edits[0].at.file.str(), "/p/a.py");
}

TEST(Merge, OtherWordsAreAnotherFinding) {
    EXPECT_EQ(
        merge_findings({finding("/a", 3, "f", "in fp16"), finding("/a", 3, "f", "in bf16")}, "/p").size(),
        2u);
}

TEST(Merge, OrderIsByPlaceWhateverComesIn) {
    const Findings out =
        merge_findings({finding("/b", 1, "f"), finding("/a", 20, "f"), finding("/a", 3, "f")}, "/p");
    ASSERT_EQ(out.size(), 3u);
    EXPECT_EQ(out[0].span.line, 3u);
    EXPECT_EQ(out[1].span.line, 20u);
    EXPECT_EQ(out[2].span.file.str(), "/b");
    EXPECT_TRUE(merge_findings({}, "/p").empty());
}

}  // namespace
}  // namespace mp::lint
