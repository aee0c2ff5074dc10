#include "analyzer/adopt/changed_lines.hpp"

#include <gmock/gmock.h>

#include "kernels/base/child.hpp"
#include "tests/analyzer/driver/temporary_tree.hpp"

namespace mp::lint {
namespace {

using testing::HasSubstr;

TEST(ChangedLines, HunksAreRangesOfTheNewFile) {
    const ChangedLines lines = ChangedLines::parse(
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -3 +3,2 @@ def f():\n-old\n+new\n"
        "+new\n@@ -9,2 +10,0 @@\n-gone\n-gone\n",
        {"new.py"}, "/r");
    EXPECT_FALSE(lines.contains("/r/x.py", 2, 2));
    EXPECT_TRUE(lines.contains("/r/x.py", 3, 3));
    EXPECT_TRUE(lines.contains("/r/x.py", 4, 4));
    EXPECT_FALSE(lines.contains("/r/x.py", 5, 5));
    EXPECT_FALSE(lines.contains("/r/x.py", 10, 10)) << "a deletion leaves no line";
    EXPECT_TRUE(lines.contains("/r/x.py", 1, 9)) << "a statement over several lines";
    EXPECT_TRUE(lines.contains("/r/x.py", 3, 0)) << "no end is known";
    EXPECT_TRUE(lines.contains("/r/new.py", 77, 77));
    EXPECT_FALSE(lines.contains("/r/y.py", 3, 3));
}

TEST(ChangedLines, ContentCannotPassForAHeader) {
    const ChangedLines lines = ChangedLines::parse(
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,0 +2,3 @@\n+++ b/evil\n+@@ -1 +1 @@\n"
        "+diff --git\n\\ No newline at end of file\n@@ -5 +9 @@\n-a\n\\ No newline\n+b\n",
        {}, "/r");
    EXPECT_FALSE(lines.contains("/r/evil", 1, 1));
    EXPECT_TRUE(lines.contains("/r/x", 4, 4));
    EXPECT_TRUE(lines.contains("/r/x", 9, 9));
}

TEST(ChangedLines, OddNamesAreRead) {
    const ChangedLines lines = ChangedLines::parse(
        "+++ \"b/a\\\"\\t\\303\\251.py\"\n@@ -1 +1 @@\n-a\n+b\n"
        "+++ b/a b.py\t\n@@ -1 +1 @@\n-a\n+b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        {}, "/r");
    EXPECT_TRUE(lines.contains("/r/a\"\t\xc3\xa9.py", 1, 1));
    EXPECT_TRUE(lines.contains("/r/a b.py", 1, 1));
}

class Repository : public TemporaryTree {
protected:
    void SetUp() override {
        TemporaryTree::SetUp();
        write("a.py", "1\n2\n3\n");
        git({"init", "-q", "."});
        git({"add", "."});
        git({"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "x"});
    }
    void git(std::vector<std::string> words) const {
        words.insert(words.begin(), "git");
        const auto child = run_tool(words, path());
        ASSERT_TRUE(child);
        ASSERT_TRUE(child->good()) << child->err;
    }
};

TEST_F(Repository, OnlyFindingsOnChangedLinesStay) {
    write("a.py", "1\n2 changed\n3\n");
    write("sub/new.py", "1\n");
    const Result<ChangedLines> lines = ChangedLines::since("HEAD", path("sub"));
    ASSERT_TRUE(lines) << lines.error().message;
    Report report;
    for (const auto& [file, line] : {std::pair{"a.py", 1u}, {"a.py", 2u}, {"sub/new.py", 1u}}) {
        report.findings.push_back({.rule = "MP401",
                                   .severity = Severity::error,
                                   .span = {.file = Symbol(path(file)), .line = line},
                                   .message = {},
                                   .fix = {},
                                   .notes = {},
                                   .function = {}});
    }
    lines->filter(report);
    ASSERT_EQ(report.findings.size(), 2u);
    EXPECT_EQ(report.findings[0].span.line, 2u);
    EXPECT_EQ(report.outside_diff, 1u);
}

TEST_F(Repository, SettingsOfTheRepositoryChangeNothing) {
    git({"config", "diff.noprefix", "true"});
    git({"config", "diff.external", "false"});
    git({"config", "color.ui", "always"});
    write("a.py", "1\n2 changed\n3\n");
    const Result<ChangedLines> lines = ChangedLines::since("HEAD", path());
    ASSERT_TRUE(lines) << lines.error().message;
    EXPECT_TRUE(lines->contains(std::filesystem::canonical(path("a.py")).string(), 2, 2));
}

TEST_F(Repository, WhatIsNoRevisionIsSaid) {
    for (const char* bad : {"no-such-branch", "--output=/tmp/x", "HEAD:a.py", ""})
        EXPECT_THAT(ChangedLines::since(bad, path()).error().message, HasSubstr("is not a commit of"));
    EXPECT_THAT(ChangedLines::since("HEAD", "/").error().message,
                HasSubstr("--diff-base: git: fatal: not a git repository"));
}

}  // namespace
}  // namespace mp::lint
