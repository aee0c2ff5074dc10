#include "runtime/gate/gate.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/judge/rule_pack.hpp"
#include "tests/runtime/gate/results.hpp"

namespace mp::trace {
namespace {

using namespace test;
using State = RuleResult::State;

const RuleResult& rule(const GateResult& g, std::string_view id) {
    return *std::ranges::find(g.rules, id, &RuleResult::id);
}

TEST(Gate, NothingFoundPasses) {
    const GateResult g = gate(judged(), {}, {}, kToday);
    EXPECT_EQ(g.verdict, Verdict::pass);
    EXPECT_EQ(exit_code(g), 0);
    EXPECT_EQ(g.rules.size(), rule_pack().size());
    EXPECT_EQ(rule(g, "MPT030").state, State::not_run);
    EXPECT_EQ(rule(g, "MPT030").why, "needs a twin (--mode trajectory)");
}

TEST(Gate, AnErrorFailsAWarningDoesNot) {
    const GateResult failed = gate(judged({finding("MPT001", Severity::error, "a")}), {}, {}, kToday);
    EXPECT_EQ(exit_code(failed), 1);
    EXPECT_EQ(rule(failed, "MPT001").state, State::fail);
    const Judgement warned = judged({finding("MPT031", Severity::warning, "a")});
    EXPECT_EQ(exit_code(gate(warned, {}, {}, kToday)), 0);
    EXPECT_EQ(rule(gate(warned, {}, {}, kToday), "MPT031").state, State::warn);
    EXPECT_EQ(exit_code(gate(warned, {}, {}, kToday, true)), 1) << "strict";
    EXPECT_EQ(exit_code(gate(judged({finding("MPT031", Severity::note, "a")}), {}, {}, kToday, true)), 0);
}

TEST(Gate, InconclusiveIsNoPassAndNoFailure) {
    Judgement j = judged();
    j.inconclusive = {"1 rank left no recording: 2"};
    EXPECT_EQ(exit_code(gate(j, {}, {}, kToday)), 3);
    EXPECT_EQ(rule(gate(j, {}, {}, kToday), "MPT090").state, State::inconclusive);
    j.findings = {finding("MPT001", Severity::error, "a")};
    EXPECT_EQ(exit_code(gate(j, {}, {}, kToday)), 1) << "what was seen is bad enough";
    Rules rules;
    rules.disabled = {"MPT001", "MPT090"};
    EXPECT_EQ(exit_code(gate(j, rules, {}, kToday)), 0);
}

TEST(Gate, DisabledRulesAreNotRun) {
    Rules rules;
    rules.disabled = {"MPT001"};
    rules.file = "mp-gate.toml";
    const GateResult g = gate(judged({finding("MPT001", Severity::error, "a")}), rules, {}, kToday);
    EXPECT_EQ(exit_code(g), 0);
    EXPECT_EQ(rule(g, "MPT001").state, State::not_run);
    EXPECT_EQ(rule(g, "MPT001").why, "disabled in mp-gate.toml");
}

TEST(Gate, SuppressionsCoverWhatTheyName) {
    const Judgement j = judged(
        {finding("MPT010", Severity::error, "blocks.1.fc"), finding("MPT010", Severity::error, "head")});
    Rules rules;
    rules.suppressions = {
        {.rule = "MPT010", .layer = "blocks.*", .reason = "known", .expires = "", .file = ""}};
    GateResult g = gate(j, rules, {}, kToday);
    EXPECT_EQ(exit_code(g), 1);
    EXPECT_EQ(rule(g, "MPT010").suppressed.size(), 1u);
    EXPECT_EQ(rule(g, "MPT010").findings.size(), 1u);
    rules.suppressions[0].layer = "*";
    EXPECT_EQ(exit_code(gate(j, rules, {}, kToday)), 0);
    for (auto member : {&Suppression::layer, &Suppression::op, &Suppression::phase}) {
        rules.suppressions[0] = {.rule = "*", .reason = "known", .expires = "", .file = ""};
        rules.suppressions[0].*member = "other*";
        g = gate(j, rules, {}, kToday);
        EXPECT_EQ(exit_code(g), 1);
        ASSERT_EQ(g.unused.size(), 1u) << "what matches nothing is said";
    }
}

TEST(Gate, ASuppressionCoversAllLayersOfAFinding) {
    Judgement j = judged({finding("MPT010", Severity::error, "blocks.1.fc")});
    j.findings[0].more_layers = {"blocks.2.fc", "head"};
    Rules rules;
    rules.suppressions = {
        {.rule = "MPT010", .layer = "blocks.*", .reason = "known", .expires = "", .file = ""}};
    EXPECT_EQ(exit_code(gate(j, rules, {}, kToday)), 1) << "head is not covered";
    j.findings[0].more_layers = {"blocks.2.fc"};
    EXPECT_EQ(exit_code(gate(j, rules, {}, kToday)), 0);
}

TEST(Gate, SuppressionsExpire) {
    const Judgement j = judged({finding("MPT010", Severity::error, "head")});
    Rules rules;
    rules.suppressions = {{.rule = "MPT010", .reason = "known", .expires = kToday, .file = ""}};
    EXPECT_EQ(exit_code(gate(j, rules, {}, kToday)), 0) << "to the end of its day";
    const GateResult g = gate(j, rules, {}, "2026-11-22");
    EXPECT_EQ(exit_code(g), 1);
    EXPECT_EQ(g.expired.size(), 1u);
    EXPECT_TRUE(g.unused.empty());
}

TEST(Gate, LintFindingsFailTooAndConfirmEachOther) {
    const Judgement j = judged({finding("MPT012", Severity::error, "(loss)")});
    const GateResult g =
        gate(j, {}, {lint("note", "/all/src/train.py", 88), lint("error", "other.py", 88)}, kToday);
    EXPECT_EQ(rule(g, "MPT012").findings[0].confirmed_by,
              std::vector<std::string>{"MP401 /all/src/train.py:88"});
    EXPECT_EQ(g.lint[0].confirmed_by, std::vector<std::string>{"MPT012 (loss) aten::addmm"});
    EXPECT_TRUE(g.lint[1].confirmed_by.empty());
    EXPECT_EQ(exit_code(gate(judged(), {}, {lint("note", "a.py", 1)}, kToday)), 0);
    EXPECT_EQ(exit_code(gate(judged(), {}, {lint("warning", "a.py", 1)}, kToday)), 1);
}

TEST(Join, WantsTheSameFileAndLine) {
    auto confirmed = [](std::string source, std::string file, int line) {
        std::vector<Finding> findings{finding("MPT012", Severity::error, "l")};
        findings[0].source = std::move(source);
        join(findings, {lint("error", std::move(file), line)});
        return !findings[0].confirmed_by.empty();
    };
    EXPECT_TRUE(confirmed("train.py:88", "src/train.py", 88));
    EXPECT_TRUE(confirmed("/a/src/train.py:88", "./src/train.py", 88));
    EXPECT_TRUE(confirmed("../src/train.py:88", "/a/src/train.py", 88))
        << "the run was started beside the source";
    EXPECT_TRUE(confirmed("/a/build/../src/train.py:88", "src//train.py", 88)) << "as a build tree writes it";
    EXPECT_FALSE(confirmed("train.py:88", "retrain.py", 88));
    EXPECT_FALSE(confirmed("a/train.py:88", "b/train.py", 88));
    EXPECT_FALSE(confirmed("train.py:88", "train.py", 89));
    EXPECT_FALSE(confirmed("", "", 0));
    EXPECT_FALSE(confirmed("train.py:99999999999999999999", "train.py", 1));
    EXPECT_FALSE(confirmed("train.py", "train.py", 0));
}

}  // namespace
}  // namespace mp::trace
