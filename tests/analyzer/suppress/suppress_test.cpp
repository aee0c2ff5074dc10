#include "analyzer/suppress/suppress.hpp"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>

#include "analyzer/suppress/python_lines.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Rule kUnused{.id = "MP001", .name = "unused-suppression", .confirmed_by = ""};
constexpr Rule kBare{.id = "MP002", .name = "suppression-without-reason", .confirmed_by = ""};
constexpr Rule kAcc{.id = "MP401", .name = "half-accumulator", .confirmed_by = ""};
constexpr Rule kNorm{.id = "MP405", .name = "half-norm-stats", .confirmed_by = ""};
constexpr const Rule* kAll[] = {&kUnused, &kBare, &kAcc, &kNorm};

// Is a finding of MP405 on that line silenced?
bool silenced_at(std::uint32_t line, const std::string& text, const char* file = "/a.cu") {
    Sources sources;
    sources.add(file, text);
    Suppressions suppressions(sources);
    return suppressions.silences({.file = Symbol(file), .line = line, .end_line = line}, kNorm);
}
bool silenced(const std::string& text, const char* file = "/a.cu") { return silenced_at(2, text, file); }

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
    EXPECT_TRUE(silenced_at(3, "# mp-lint: disable=MP405 why,\n# in two lines\nx = 1\n", "/a.py"));
}

TEST(Suppress, OtherRulesAndOtherToolsSilenceNothing) {
    EXPECT_FALSE(silenced("\nx; // mp-lint: disable=MP401\n"));
    EXPECT_FALSE(silenced("\nx; // MP405 is fine here\n"));
    EXPECT_FALSE(silenced("\nx; // NOLINT\n"));
    EXPECT_FALSE(silenced("\nx; // NOLINT(bugprone-foo) MP405\n"));
    EXPECT_FALSE(silenced("\nx; // mp-lint: disable= MP401 like MP405\n")) << "a reason is not a rule";
    EXPECT_FALSE(silenced("\nx; // mp-lint: enable=MP405\n"));
}

TEST(Suppress, NoqaIsPythons) {
    EXPECT_FALSE(silenced("\nx; // noqa: MP405\n"));
    EXPECT_TRUE(silenced("\nx  # noqa: MP405\n", "/a.pyi"));
}

TEST(Suppress, OnlyCommentsCount) {
    EXPECT_FALSE(silenced("\nputs(\"// mp-lint: disable=MP405\");\n"));
    EXPECT_TRUE(silenced("\nputs(\"\\\"//\"); // mp-lint: disable=MP405\n"));
    EXPECT_TRUE(silenced("\nint n = 1'000; // mp-lint: disable=MP405\n"));
    EXPECT_TRUE(silenced("\nchar c = '\"'; // mp-lint: disable=MP405\n"));
}

TEST(Suppress, RangesAndWholeFiles) {
    const std::string range = "a\n# mp-lint: disable-begin=MP405 old code\nb\n# mp-lint: disable-end\nc\n";
    EXPECT_FALSE(silenced_at(1, range, "/a.py"));
    EXPECT_TRUE(silenced_at(3, range, "/a.py"));
    EXPECT_FALSE(silenced_at(5, range, "/a.py"));
    const std::string nested =
        "# mp-lint: disable-begin=MP405 x\n# mp-lint: disable-begin=MP401 x\n"
        "# mp-lint: disable-end=MP405\nc\n# mp-lint: disable-end\n";
    EXPECT_TRUE(silenced_at(2, nested, "/a.py"));
    EXPECT_FALSE(silenced_at(4, nested, "/a.py")) << "the named one was ended";
    EXPECT_TRUE(silenced_at(1, "a\nb\nc  # mp-lint: disable-file=MP405 generated\n", "/a.py"));
    EXPECT_FALSE(silenced_at(1, "a\n# mp-lint: disable-file=MP401 generated\n", "/a.py"));
}

TEST(Suppress, PythonHasItsOwnComments) {
    EXPECT_TRUE(silenced("\nx = 1  # noqa: MP405\n", "/a.py"));
    EXPECT_TRUE(silenced("# mp-lint: disable=MP405 why\nx = 1\n", "/a.py"));
    EXPECT_FALSE(silenced("\nx = '# noqa: MP405'\n", "/a.py"));
    EXPECT_FALSE(silenced("\"\"\"\n# noqa: MP405\n\"\"\"\n", "/a.py")) << "in a docstring";
    EXPECT_FALSE(silenced("\n# noqa\nx = 1\n", "/a.py")) << "a bare noqa is other tools'";
}

TEST(Suppress, AStatementOverSeveralLinesIsMeantByItsFirstAndLast) {
    const char* call = "y = 0\nx = f(  # noqa: MP405 a\n    g(1),\n    h(2),\n)\nz = 1\n";
    EXPECT_TRUE(silenced_at(2, call, "/a.py"));
    EXPECT_TRUE(silenced_at(3, call, "/a.py"));
    EXPECT_TRUE(silenced_at(5, call, "/a.py"));
    EXPECT_FALSE(silenced_at(6, call, "/a.py"));
    EXPECT_TRUE(silenced_at(1, "x = f(\n  1,\n)  # noqa: MP405 a\n", "/a.py"));
    EXPECT_FALSE(silenced_at(1, "x = f(\n  1,  # noqa: MP405 a\n)\n", "/a.py"))
        << "in the middle it is that line's";
    EXPECT_TRUE(silenced_at(2, "x = f(\n  1,  # noqa: MP405 a\n)\n", "/a.py"));
    EXPECT_TRUE(silenced_at(2, "# mp-lint: disable=MP405 a\nx = f(\n  1)\n", "/a.py"));
    EXPECT_TRUE(silenced_at(3, "# mp-lint: disable=MP405 a\nx = f(\n  1)\n", "/a.py"));
    EXPECT_TRUE(silenced_at(2, "with a(  # noqa: MP405 a\n  1):\n  x()\n", "/a.py"));
    EXPECT_FALSE(silenced_at(3, "with a(  # noqa: MP405 a\n  1):\n  x()\n", "/a.py"));
}

TEST(Suppress, InNotebooksTheCellsCommentsCount) {
    // The whole notebook may be one line of the file.
    Sources sources;
    sources.add("/n.ipynb",
                R"({"source": ["x = f('#')  # noqa: MP405 a\n", "y = '# noqa: MP405 a'\n", "z"]})");
    sources.add_cells("/n.ipynb", {{"x = f('#')  # noqa: MP405 a", 1, 14, 1, 1},
                                   {"y = '# noqa: MP405 a'", 1, 47, 1, 2},
                                   {"# mp-lint: disable=MP405 a", 1, 74, 2, 1},
                                   {"z(", 1, 100, 2, 2},
                                   {")", 1, 108, 2, 3}});
    Suppressions suppressions(sources);
    const auto silenced_in = [&](std::uint32_t column) {
        return suppressions.silences({.file = Symbol("/n.ipynb"),
                                      .line = 1,
                                      .column = column,
                                      .end_line = 1,
                                      .end_column = column + 1},
                                     kNorm);
    };
    EXPECT_TRUE(silenced_in(18));
    EXPECT_FALSE(silenced_in(50));
    EXPECT_TRUE(silenced_in(100));
    EXPECT_TRUE(silenced_in(108)) << "another line of the same statement";
}

// "line rule: message" of each.
std::vector<std::string> problems(const std::string& text, Rules ran = kAll, std::uint32_t reported = 0,
                                  const char* file = "/a.py") {
    Sources sources;
    sources.add(file, text);
    Suppressions suppressions(sources);
    if (reported) suppressions.silences({.file = Symbol(file), .line = reported}, kNorm);
    std::vector<std::string> out;
    for (const Finding& f : suppressions.problems(file, ran, kAll)) {
        EXPECT_EQ(f.severity, Severity::note);
        out.push_back(std::to_string(f.span.line) + " " + std::string(f.rule) + ": " + f.message);
    }
    return out;
}

TEST(SuppressProblems, OneThatSilencesNothingIsReported) {
    EXPECT_THAT(problems("x = 1  # mp-lint: disable=MP405 why\n"),
                ElementsAre("1 MP001: this suppression of MP405 silences nothing in this run"));
    EXPECT_THAT(problems("x = 1  # mp-lint: disable=MP405 why\n", kAll, 1), IsEmpty());
    EXPECT_THAT(problems("x = 1  # noqa: MP405 why\n"), ElementsAre(HasSubstr("MP001")));
    EXPECT_THAT(problems("x;  // NOLINT(MP405) why\n", kAll, 0, "/a.cu"), ElementsAre(HasSubstr("MP001")));
}

TEST(SuppressProblems, RulesThatDidNotRunProveNothing) {
    constexpr const Rule* kSome[] = {&kUnused, &kBare, &kAcc};
    EXPECT_THAT(problems("x = 1  # mp-lint: disable=MP405 why\n", kSome), IsEmpty());
    EXPECT_THAT(problems("x = 1  # mp-lint: disable=MP401,MP405 why\n", kSome), IsEmpty());
    EXPECT_THAT(problems("x = 1  # mp-lint: disable=MP4 why\n", kSome), IsEmpty());
    constexpr const Rule* kWithout[] = {&kAcc, &kNorm};
    EXPECT_THAT(problems("x = 1  # mp-lint: disable=MP405\n", kWithout), IsEmpty())
        << "MP001 itself was not asked for";
}

TEST(SuppressProblems, OneWithoutAReasonIsReported) {
    for (const char* bare :
         {"x  # mp-lint: disable=MP405\n", "x  # mp-lint: disable=MP405 --\n", "x  # noqa: MP405\n"}) {
        EXPECT_THAT(problems(bare, kAll, 1), ElementsAre("1 MP002: the suppression of MP405 gives no reason"))
            << bare;
    }
    for (const char* good :
         {"x  # mp-lint: disable=MP405 measured\n", "x  # noqa: MP405 - ok\n",
          "x  # measured; mp-lint: disable=MP405\n", "x  # mp-lint: disable=MP405 \xe6\xb8\xac\n"}) {
        EXPECT_THAT(problems(good, kAll, 1), IsEmpty()) << good;
    }
    EXPECT_THAT(problems("x; /* mp-lint: disable=MP405 */\n", kAll, 1, "/a.cu"),
                ElementsAre(HasSubstr("MP002")));
    EXPECT_THAT(problems("x; // NOLINT(MP405): measured\n", kAll, 1, "/a.cu"), IsEmpty());
}

TEST(SuppressProblems, WhatIsNotUnderstoodSilencesNothingAndSaysSo) {
    EXPECT_THAT(problems("x  # mp-lint: disable(MP405) -- why\n", kAll, 1),
                ElementsAre(HasSubstr("not understood")));
    EXPECT_THAT(problems("x  # mp-lint: disable=MP999 why\n", kAll, 1),
                ElementsAre(HasSubstr("'MP999' in this suppression is not a rule")));
    EXPECT_THAT(problems("# mp-lint: disable-end\n"), ElementsAre(HasSubstr("ends no")));
    EXPECT_THAT(problems("# mp-lint: disable-begin=MP405 why\nx\n", kAll, 2),
                ElementsAre(HasSubstr("has no end")));
    EXPECT_THAT(problems("# mp-lint: see docs/lint.md\n"), IsEmpty());
}

TEST(SuppressProblems, OtherToolsCommentsAreTheirs) {
    EXPECT_THAT(problems("x  # noqa: E501\ny  # noqa: ALL\nz  # noqa\n"), IsEmpty());
    EXPECT_THAT(problems("x; // NOLINT(*)\ny; // NOLINT(bugprone-foo)\n", kAll, 0, "/a.cu"), IsEmpty());
}

TEST(MentionsSuppression, CodesOfOtherToolsAreNotWorthALook) {
    for (const char* other : {"x  # noqa: E501\n", "x  # noqa: F401, PLR0913 why\ny  # noqa\n", ""})
        EXPECT_FALSE(mentions_suppression(other)) << other;
    for (const char* ours : {"x  # noqa: MP405\n", "x  # noqa: E501, mp405\n", "x  # noqa: ALL\n",
                             "x  # noqa: half-acc\n", "x  # noqa: MP4*\n", "x  # noqa: E501 mp-lint: a",
                             "x; // NOLINT(MP405)\n", "x  # noqa: E501\ny  # noqa: MP4\n"})
        EXPECT_TRUE(mentions_suppression(ours)) << ours;
}

TEST(SuppressProblems, TheyCanBeSilencedToo) {
    EXPECT_THAT(problems("# mp-lint: disable-file=MP002 old code\nx  # noqa: MP405\n", kAll, 2), IsEmpty());
}

TEST(PythonLines, StatementsAreJoinedAsTheLexerDoes) {
    const auto ends = [](std::string_view text) {
        std::vector<std::size_t> out;
        for (const PythonLine& line : python_lines(text)) out.push_back(line.last);
        return out;
    };
    EXPECT_THAT(ends("a\nb"), ElementsAre(1u, 2u));
    EXPECT_THAT(ends("a(\n[\n]\n)\nb"), ElementsAre(4u, 4u, 4u, 4u, 5u));
    EXPECT_THAT(ends("a \\\n b\nc"), ElementsAre(2u, 2u, 3u));
    EXPECT_THAT(ends("a \\\r\n b\r\nc"), ElementsAre(2u, 2u, 3u));
    EXPECT_THAT(ends("s = '''\n(\n'''\nc"), ElementsAre(3u, 3u, 3u, 4u));
    EXPECT_THAT(ends("s = '(\nc"), ElementsAre(1u, 2u)) << "a string that is never closed";
    EXPECT_THAT(ends("s = 'a\\\nb'\nc"), ElementsAre(2u, 2u, 3u));
    EXPECT_THAT(ends("f(\ndef g():\n  pass"), ElementsAre(1u, 2u, 3u)) << "never closed";
    EXPECT_THAT(ends("s = 'a\\\r\nb'\r\nc"), ElementsAre(2u, 2u, 3u));
    EXPECT_THAT(ends("f('(\n)\nc"), ElementsAre(2u, 2u, 3u)) << "the bracket is still open";
    EXPECT_THAT(ends(")\n}\nc"), ElementsAre(1u, 2u, 3u));
    EXPECT_THAT(ends("f(r'\\'', '(')\nc"), ElementsAre(1u, 2u));
}

TEST(PythonLines, AnyTextIsTaken) {
    std::mt19937 random(7);
    constexpr std::string_view kBytes = "a#'\"\\\n\r()[]{} @d";
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (unsigned n = random() % 40; n > 0; --n) text += kBytes[random() % kBytes.size()];
        const std::vector<PythonLine> lines = python_lines(text);
        ASSERT_EQ(lines.size(), 1u + static_cast<std::size_t>(std::ranges::count(text, '\n')));
        for (std::size_t i = 0; i < lines.size(); ++i) {
            ASSERT_LE(lines[i].first, i + 1) << text;
            ASSERT_GE(lines[i].last, i + 1) << text;
            ASSERT_LE(lines[i].last, lines.size()) << text;
        }
    }
}

TEST(PythonLines, CommentsAreFoundOutsideOfStrings) {
    const auto comment = [](std::string_view line) { return python_lines(line)[0].comment; };
    EXPECT_EQ(comment("a # b"), 2u);
    EXPECT_EQ(comment("'#' # b # c"), 4u);
    EXPECT_EQ(comment("\"\"\"#\"\"\" #"), 8u);
    EXPECT_EQ(comment("'\\'#'"), PythonLine::kNone);
    EXPECT_EQ(comment("f'{x:#x}'"), PythonLine::kNone);
    EXPECT_EQ(python_lines("a\n  # b")[1].comment, 2u);
}

}  // namespace
}  // namespace mp::lint
