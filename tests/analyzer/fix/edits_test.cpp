#include "analyzer/fix/edits.hpp"

#include <gtest/gtest.h>

#include "tests/analyzer/fix/edited.hpp"

namespace mp::lint {
namespace {

using edited::edit;
using edited::finding;

constexpr const char* kFile = "/p/a.py";

FixPlan plan(const std::string& text, Findings findings, bool with_unsafe = false) {
    return plan_fixes(edited::report({{kFile, text}}, std::move(findings)), with_unsafe);
}

std::string after(const FixPlan& plan) { return plan.files.size() == 1 ? plan.files[0].after : ""; }

TEST(PlanFixes, ReplacesInsertsAndDeletes) {
    const FixPlan p = plan("x = a.half()  # keep\ny = 1\n",
                           {finding({edit(kFile, {1, 6, 1, 13}, "")}),
                            finding({edit(kFile, {2, 1, 2, 1}, "# new\n"), edit(kFile, {2, 5, 2, 6}, "2")})});
    EXPECT_EQ(after(p), "x = a  # keep\n# new\ny = 2\n");
    EXPECT_EQ(p.fixed, 2u);
    EXPECT_EQ(p.files[0].findings, 2u);
    EXPECT_EQ(p.files[0].before, "x = a.half()  # keep\ny = 1\n");
}

TEST(PlanFixes, AnEditMaySpanLinesAndEndTheFile) {
    EXPECT_EQ(after(plan("f(\n  1,\n)\n", {finding({edit(kFile, {1, 2, 3, 2}, "()")})})), "f()\n");
    EXPECT_EQ(after(plan("x\n", {finding({edit(kFile, {2, 1, 2, 1}, "y\n")})})), "x\ny\n");
    EXPECT_EQ(after(plan("x", {finding({edit(kFile, {1, 2, 1, 2}, ";")})})), "x;");
}

TEST(PlanFixes, OfOverlappingFindingsTheFirstByPositionWinsWhole) {
    const FixPlan p =
        plan("abcdef\nxyz\n", {finding({edit(kFile, {1, 3, 1, 5}, "2"), edit(kFile, {2, 1, 2, 2}, "2")}),
                               finding({edit(kFile, {1, 1, 1, 4}, "1")})});
    EXPECT_EQ(after(p), "1def\nxyz\n") << "nothing of the second";
    EXPECT_EQ(p.fixed, 1u);
    EXPECT_EQ(p.conflicting, 1u);
}

TEST(PlanFixes, TouchingIsNoConflict) {
    const FixPlan p =
        plan("abcd\n", {finding({edit(kFile, {1, 1, 1, 3}, "1")}), finding({edit(kFile, {1, 3, 1, 5}, "2")}),
                        finding({edit(kFile, {1, 3, 1, 3}, "-")})});
    EXPECT_EQ(after(p), "1-2\n");
    EXPECT_EQ(p.conflicting, 0u);
}

TEST(PlanFixes, AnInsertionInsideAReplacementConflicts) {
    const FixPlan p = plan(
        "abcd\n", {finding({edit(kFile, {1, 1, 1, 4}, "1")}), finding({edit(kFile, {1, 2, 1, 2}, "-")})});
    EXPECT_EQ(after(p), "1d\n");
    EXPECT_EQ(p.conflicting, 1u);
}

TEST(PlanFixes, TheSameEditTwiceIsMadeOnce) {
    const Edit import = edit(kFile, {1, 1, 1, 1}, "import torch\n");
    const FixPlan p = plan("a\nb\n", {finding({import, edit(kFile, {1, 1, 1, 2}, "x")}),
                                      finding({import, edit(kFile, {2, 1, 2, 2}, "y")})});
    EXPECT_EQ(after(p), "import torch\nx\ny\n");
    EXPECT_EQ(p.fixed, 2u);
    const FixPlan other =
        plan("a\n", {finding({import}), finding({edit(kFile, {1, 1, 1, 1}, "import os\n")})});
    EXPECT_EQ(other.conflicting, 1u) << "nobody knows their order";
}

TEST(PlanFixes, UnsafeOnesWaitToBeAskedFor) {
    const Findings unsafe{finding({edit(kFile, {1, 1, 1, 2}, "b")}, false)};
    const FixPlan p = plan("a\n", unsafe);
    EXPECT_TRUE(p.files.empty());
    EXPECT_EQ(p.need_unsafe, 1u);
    EXPECT_EQ(after(plan("a\n", unsafe, true)), "b\n");
}

TEST(PlanFixes, LineEndsAndForeignBytesStay) {
    EXPECT_EQ(after(plan("a = 1\r\nb\r\n", {finding({edit(kFile, {2, 1, 2, 1}, "x\ny\n")})})),
              "a = 1\r\nx\r\ny\r\nb\r\n");
    EXPECT_EQ(after(plan("s = '\xe9\xff' + a\n", {finding({edit(kFile, {1, 12, 1, 13}, "b")})})),
              "s = '\xe9\xff' + b\n");
    EXPECT_EQ(after(plan("a\r\nb\r\n", {finding({edit(kFile, {1, 2, 1, 2}, " # x")})})), "a # x\r\nb\r\n");
}

TEST(PlanFixes, WhatIsNotAPlaceIsLeftAlone) {
    for (const Edit& e :
         {edit(kFile, {1, 5, 1, 6}, "x"), edit(kFile, {9, 1, 9, 1}, "x"), edit(kFile, {1, 2, 1, 1}, "x"),
          edit(kFile, {0, 0, 0, 0}, "x"), edit("/p/other.py", {1, 1, 1, 1}, "x")}) {
        const FixPlan p = plan("a\n", {finding({e})});
        EXPECT_TRUE(p.files.empty());
        EXPECT_EQ(p.not_ours, 1u);
    }
}

TEST(PlanFixes, NotebooksAndForeignFilesAreNeverEdited) {
    const auto edits = [](const char* file) { return Findings{finding({edit(file, {1, 1, 1, 2}, "b")})}; };
    Report r = edited::report({{"/p/n.ipynb", "a\n"}}, edits("/p/n.ipynb"));
    EXPECT_EQ(plan_fixes(r, true).not_ours, 1u);
    r = edited::report({{"/usr/include/x.h", "a\n"}}, edits("/usr/include/x.h"));
    EXPECT_EQ(plan_fixes(r, true).fixed, 1u) << "asked for by name";
    r.units.clear();
    EXPECT_EQ(plan_fixes(r, true).not_ours, 1u);
}

TEST(PlanFixes, AFindingThatNeedsTwoFilesIsLeftAlone) {
    const Report r =
        edited::report({{kFile, "a\n"}, {"/p/b.py", "a\n"}},
                       {finding({edit(kFile, {1, 1, 1, 2}, "x"), edit("/p/b.py", {1, 1, 1, 2}, "x")})});
    EXPECT_EQ(plan_fixes(r, true).not_ours, 1u);
}

}  // namespace
}  // namespace mp::lint
