#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analyzer/report/sample.hpp"
#include "tests/kernels/base/unsafe_text.hpp"

namespace mp::lint {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(TextReport, AFindingReadsAsCompilersWriteIt) {
    EXPECT_EQ(text_report(sample::report(), {}),
              "norm.cu:2:20: error: variance is held in fp16 [MP405 half-norm-stats]\n"
              "    2 |     const T rstd = hrsqrt(T(var));\n"
              "      |                    ^~~~~~\n"
              "      = in layer_norm<__half>, instantiated at model.cu:2\n"
              "      = fix: keep it in float\n"
              "\n"
              "2 files, 1 finding (1 error) · 0.4 s\n");
}

TEST(TextReport, NoUnsafeCharacterReachesTheTerminal) {
    Report r = sample::report();
    for (const std::string_view unsafe : kUnsafeCharacters) {
        r.findings[0].message = r.findings[0].fix = unsafe;
        EXPECT_THAT(text_report(r, {}), Not(HasSubstr(unsafe)));
    }
}

TEST(TextReport, ACleanRunIsOneLine) {
    Report r = sample::report();
    r.findings.clear();
    r.files = 1;
    EXPECT_EQ(text_report(r, {}), "1 file, no findings · 0.4 s\n");
    EXPECT_EQ(text_report(r, {.quiet = true}), "");
}

TEST(TextReport, TheLastLineCountsEverythingThatIsNotWhole) {
    Report r = sample::report();
    r.findings.push_back(sample::finding(sample::span("/p/norm.cu", 3, 1, 4), Severity::warning));
    r.findings.push_back(sample::finding(sample::span("/p/norm.cu", 3, 1, 4), Severity::note));
    r.suppressed = r.findings;
    for (const UnitState state :
         {UnitState::crashed, UnitState::timeout, UnitState::failed, UnitState::partial}) {
        UnitResult u;
        u.path = "/p/" + std::string(name_of(state)) + ".cu";
        u.state = state;
        r.units.push_back(u);
    }
    EXPECT_THAT(
        text_report(r, {}),
        EndsWith("2 files, 3 findings (1 error, 1 warning, 1 note) · 3 suppressed · 3 units not analysed: "
                 "crashed.cu, timeout.cu, failed.cu (see --verbose) · 1 unit did not parse cleanly: "
                 "partial.cu (see --verbose) · 0.4 s\n"));
}

TEST(TextReport, VerboseSaysWhatEveryUnitWasWorth) {
    Report r = sample::report();
    UnitResult u;
    u.path = "/p/old.cu";
    u.state = UnitState::partial;
    u.message = "2 errors";
    u.headers = "stubs";
    u.passes = {"host", "device sm_80"};
    u.coverage.functions = 4;
    u.coverage.uninstantiated = 2;
    u.coverage.missing_headers = {Symbol("cub/cub.cuh")};
    u.coverage.messages = {Symbol("old.cu:3:1: error: unknown type")};
    u.warnings = {"@x.rsp: cannot be read"};
    r.units = {u};
    const std::string text = text_report(r, {.verbose = true});
    EXPECT_THAT(text,
                HasSubstr("unit old.cu: partial (2 errors) · 4 functions, 0 statements, 2 templates never "
                          "instantiated · host, device sm_80 · CUDA headers: stubs"));
    EXPECT_THAT(text, HasSubstr("  missing header: cub/cub.cuh\n"));
    EXPECT_THAT(text, HasSubstr("  old.cu:3:1: error: unknown type\n"));
    EXPECT_THAT(text, HasSubstr("  @x.rsp: cannot be read\n"));
}

TEST(TextReport, HiddenNotesAreCounted) {
    Report r = sample::report();
    const SourceSpan at = sample::span("/p/norm.cu", 3, 1, 4);
    r.findings.push_back(sample::finding(at, Severity::note));
    r.findings.back().edits = {{at, "x"}};
    r.findings.back().safe_edits = true;
    r.findings.push_back(sample::finding(at, Severity::warning));
    r.findings.push_back(sample::finding(at, Severity::note));
    hide_notes(r);
    EXPECT_THAT(text_report(r, {}), Not(HasSubstr("note: ")));
    EXPECT_THAT(text_report(r, {}),
                EndsWith("\n2 files, 2 findings (1 error, 1 warning) · 2 notes; --notes shows "
                         "them · 1 fixable with --fix · 0.4 s\n"));
    EXPECT_THAT(markdown_report(r), HasSubstr("2 files analysed, 2 notes; --notes shows them\n"));
}

std::string line_with_caret(const std::string& source, std::uint32_t column, std::uint32_t end_column) {
    Report r = sample::report();
    r.sources.add("/p/norm.cu", source);
    r.findings = {sample::finding(sample::span("/p/norm.cu", 1, column, end_column))};
    const std::string text = text_report(r, {});
    const std::size_t start = text.find('\n') + 1;
    return text.substr(start, text.find("      = in") - start);
}

TEST(TextReport, TheCaretStandsWhereTheEyeSeesThePlace) {
    EXPECT_EQ(line_with_caret("\tx = y;\n", 6, 7), "    1 |     x = y;\n      |         ^\n");
    EXPECT_EQ(line_with_caret("数 = y;\n", 7, 8), "    1 | 数 = y;\n      |      ^\n");
}

TEST(TextReport, ThePlaceMayBeWrong) {
    EXPECT_EQ(line_with_caret("ab\n", 90, 95), "    1 | ab\n      |   ^\n") << "past the end of the line";
    Report r = sample::report();
    r.findings[0].span.line = 4000;
    EXPECT_THAT(text_report(r, {}), Not(HasSubstr("4000 |"))) << "past the end of the file";
    r.findings[0].span = {.file = Symbol("/gone.cu"), .line = 1, .column = 1};
    EXPECT_THAT(text_report(r, {}), HasSubstr("/gone.cu:1:1: error"));
}

TEST(TextReport, HugeLinesAreCutAroundThePlace) {
    const std::string text =
        line_with_caret(std::string(1000000, 'x') + "HERE" + std::string(1000000, 'y'), 1000001, 1000005);
    EXPECT_LT(text.size(), 500u);
    const std::size_t line_end = text.find('\n');
    const std::size_t caret = text.find('^') - (line_end + 1);
    // Columns, not bytes: the first three bytes of the cut text are one "…".
    EXPECT_EQ(text.find("HERE") - 2, caret);
    EXPECT_EQ(text.substr(text.find('^'), 4), "^~~~");
}

TEST(TextReport, NothingOfTheSourceReachesTheTerminalRaw) {
    Report r = sample::report();
    r.sources.add("/p/e\x1bvil.cu", "x \x1b[2J\x07 y\n");
    r.findings = {sample::finding(sample::span("/p/e\x1bvil.cu", 1, 3, 4))};
    r.findings[0].message = "in \x1b]0;owned\x07";
    EXPECT_THAT(text_report(r, {}), Not(HasSubstr("\x1b")));
    EXPECT_THAT(text_report(r, {.color = true}), HasSubstr("\x1b[1;31m"));
}

}  // namespace
}  // namespace mp::lint
