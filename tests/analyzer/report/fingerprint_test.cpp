#include "analyzer/report/fingerprint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analyzer/report/sample.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;

// Values published with GitHub's own implementation (codeql-action, fingerprints test).
TEST(LineHashes, AgreeWithGitHub) {
    EXPECT_THAT(line_hashes(""), ElementsAre("c129715d7a2bc9a3:1"));
    EXPECT_THAT(line_hashes(" a\nb\n  \t\tc\n d"), ElementsAre("271789c17abda88f:1", "54703d4cd895b18:1",
                                                               "180aee12dab6264:1", "a23a3dc5e078b07b:1"));
    EXPECT_THAT(line_hashes(" hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End"),
                ElementsAre("8b7cf3e952e7aeb2:1", "b1ae1287ec4718d9:1", "bff680108adb0fcc:1",
                            "c6805c5e1288b612:1", "b86d3392aea1be30:1", "e6ceba753e1a442:1"));
}

TEST(LineHashes, LineEndingsDoNotMatter) {
    const auto expected =
        ElementsAre("e9496ae3ebfced30:1", "fb7c023a8b9ccb3f:1", "ce8ba1a563dcdaca:1", "e20e36e16fcb0cc8:1",
                    "b3edc88f2938467e:1", "c8e28b0b4002a3a0:1", "c129715d7a2bc9a3:1");
    EXPECT_THAT(line_hashes(" hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End\n"), expected);
    EXPECT_THAT(line_hashes(" hello; \t\nworld!!!\r\r\r  \t\tGreetings\r End\r"), expected);
    EXPECT_THAT(line_hashes(" hello; \t\r\nworld!!!\r\n\r\n\r\n  \t\tGreetings\r\n End\r\n"), expected);
    EXPECT_THAT(line_hashes(" hello; \t\nworld!!!\r\n\n\r  \t\tGreetings\r End\r\n"), expected);
}

TEST(LineHashes, EqualLinesAreCounted) {
    std::string text;
    for (int i = 0; i < 10; ++i) text += "Lorem ipsum dolor sit amet.\n";
    EXPECT_THAT(
        line_hashes(text),
        ElementsAre("a7f2ff13bc495cf2:1", "a7f2ff13bc495cf2:2", "a7f2ff13bc495cf2:3", "a7f2ff13bc495cf2:4",
                    "a7f2ff13bc495cf2:5", "a7f2ff13bc495cf2:6", "a7f2ff1481e87703:1", "a9cf91f7bbf1862b:1",
                    "55ec222b86bcae53:1", "cc97dc7b1d7d8f7b:1", "c129715d7a2bc9a3:1"));
}

std::string fingerprint_of(const Report& report) { return Fingerprints(report).next(report.findings[0]); }

TEST(Fingerprint, SurvivesEditsElsewhereAndOtherBlanks) {
    const Report before = sample::report();
    Report after = sample::report();
    after.sources.add("/p/norm.cu", "int a;\n\n\n  const  T rstd =\thrsqrt(T(var));\n");
    after.findings[0].span.line = 4;
    EXPECT_EQ(fingerprint_of(before), fingerprint_of(after));
}

TEST(Fingerprint, DiffersByWhatMakesAFindingAnother) {
    const std::string base = fingerprint_of(sample::report());
    Report other = sample::report();
    other.findings[0].rule = "MP401";
    EXPECT_NE(base, fingerprint_of(other));
    other = sample::report();
    other.findings[0].function = Symbol("other<__half>");
    EXPECT_NE(base, fingerprint_of(other));
    other = sample::report();
    other.sources.add("/p/norm.cu", "\nsomething else\n");
    EXPECT_NE(base, fingerprint_of(other));
}

TEST(Fingerprint, EqualFindingsAreCounted) {
    const Report report = sample::report();
    Fingerprints fingerprints(report);
    const std::string first = fingerprints.next(report.findings[0]);
    EXPECT_NE(first, fingerprints.next(report.findings[0]));
}

}  // namespace
}  // namespace mp::lint
