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

TEST(Merge, DtypesOfOnePlaceAreOneFinding) {
    const Findings out =
        merge_findings({finding("/a", 3, "f<half>", "sum is held in fp16, of x: it keeps 11 bits"),
                        finding("/a", 3, "f<bf16>", "sum is held in bf16, of x: it keeps 8 bits"),
                        finding("/a", 3, "f<e4m3>", "sum is held in e4m3, of x: it keeps 4 bits")},
                       "/p");
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].message,
              "sum is held in bf16, of x: it keeps 8 bits; with e4m3: it keeps 4 bits; with fp16: it keeps "
              "11 bits");
    EXPECT_EQ(out[0].notes.size(), 1u);
    EXPECT_EQ(
        merge_findings({finding("/a", 3, "f", "in bf16"), finding("/a", 3, "f", "in fp16")}, "/p")[0].message,
        "in bf16; with fp16 too");
}

TEST(Merge, ALineHasOneFindingOfARuleTheMostSevere) {
    Finding mild = finding("/a", 3, "f", "'x' is cast");
    mild.severity = Severity::note;
    Finding later = finding("/a", 3, "f", "'w' is cast");
    later.span.column = 20;
    const Findings out = merge_findings({mild, later}, "/p");
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].message, "'w' is cast");
    EXPECT_EQ(out[0].notes.back().text, "also in column 1: 'x' is cast");
    EXPECT_EQ(merge_findings({finding("/a", 3, "f", "one"), finding("/a", 3, "f", "two")}, "/p")[0]
                  .notes.back()
                  .text,
              "also: two");
}

TEST(Merge, EditsAndNotebooksKeepTheirPlaces) {
    Finding first = finding("/a.py", 3, "f"), second = first;
    second.span.column = 20;
    second.edits = {{.at = second.span, .text = "t"}};
    EXPECT_EQ(merge_findings({first, second}, "/p").size(), 2u);
    second.edits.clear();
    first.span.file = second.span.file = Symbol("/a.ipynb");
    EXPECT_EQ(merge_findings({first, second}, "/p").size(), 2u) << "all its cells may be one line";
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
