// The whole result of judge(), for runs with a defect and for runs without it.

#include "runtime/judge/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/judge/rule_pack.hpp"
#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;

TEST(Judge, AHealthyRunHasNoFinding) {
    const Judgement j = judge(healthy());
    EXPECT_EQ(text_of(j), "");
    EXPECT_FALSE(j.first_overflow.found);
    EXPECT_EQ(j.ladder.size(), 3u);
    EXPECT_EQ(j.samples_lost, 0);
}

TEST(Judge, WhatKeepsAVerdictFromBeingGiven) {
    EXPECT_THAT(judge(RunModel{}).inconclusive, testing::Contains(HasSubstr("no step")));
    RunModel m = healthy();
    m.missing = {Rank{2}};
    m.unreadable = {{"bad.mpt: not a recording", ""}};
    m.ranks[0].problems = 2;
    m.ranks[0].lost_records = 4;
    m.coverage.unshadowed = 20;
    EXPECT_EQ(judge(m).inconclusive.size(), 5u);
    EXPECT_THAT(judge(m).inconclusive.back(), HasSubstr("83 %"));
    m = healthy();
    m.mode = Mode::watch;
    m.coverage = {};
    EXPECT_TRUE(judge(m).inconclusive.empty()) << "without a twin there is nothing to cover";
}

TEST(Coverage, ATwinThatGaveItsMemoryUpIsInconclusive) {
    RunModel m = test::healthy();
    m.notes.push_back({NoteKind::given_up, "no memory was left, and the twin was given up", 1, 1, Step{7}});
    EXPECT_THAT(judge(m).inconclusive,
                testing::ElementsAre("from step 7 on: no memory was left, and the twin was given up"));
}

// A process that was killed, or ended by an exception, did not say what the rest of its run would have been.
TEST(Coverage, ARunThatDidNotEndIsInconclusive) {
    RunModel m = test::healthy();
    m.ranks[0].ended = false;
    EXPECT_THAT(judge(m).inconclusive, testing::ElementsAre(HasSubstr("killed, crashed or still running")));
    m.ranks[0].running = true;
    EXPECT_TRUE(judge(m).inconclusive.empty());
    m.ranks[0].ended = true;
    m.ranks[0].ended_by = "ValueError";
    m.ranks[0].process.rank = Rank{0};
    EXPECT_THAT(judge(m).inconclusive, testing::ElementsAre("ended by ValueError: rank 0 (step 7)"));
    m.ranks[0].ended_by = "exit status 1";
    EXPECT_THAT(judge(m).inconclusive,
                testing::ElementsAre("the program ended with status 1: rank 0 (step 7)"));
    m.ranks.push_back(m.ranks[0]);
    m.ranks[1].process.restart = 1;
    m.ranks[1].ended_by.clear();
    EXPECT_TRUE(judge(m).inconclusive.empty()) << "the second attempt came to its end";
}

TEST(Coverage, ValuesFromOutsideAreInconclusive) {
    RunModel m = test::healthy();
    m.coverage.outside = 3;
    EXPECT_THAT(judge(m).inconclusive, testing::ElementsAre(HasSubstr("custom kernels")));
    RunModel::Note note;
    note.text = "torch.compile: a.py:3 ran compiled code";
    m.notes.push_back(note);
    EXPECT_THAT(judge(m).inconclusive, testing::ElementsAre(HasSubstr("--eager")));
}

TEST(Judge, RulesWithoutMeasuresAreNotRun) {
    RunModel m = healthy();
    auto why = [](const Judgement& j, std::string_view id) {
        for (const auto& n : j.not_run) {
            if (n.rule == id) return n.why;
        }
        return std::string();
    };
    EXPECT_EQ(why(judge(m), "MPT010"), "");
    for (OpSum& s : m.ops) s.total.loc_compared = 0;
    EXPECT_NE(why(judge(m), "MPT010"), "");
}

TEST(Judge, ErrorsComeBeforeWarningsAndTheGreaterShareFirst) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("a", "aten::bmm", Phase::forward, DType::bf16, 1.7, 1));
    m.ops.push_back(op_sum("b", "aten::mm", Phase::forward, DType::bf16, 3, 2));
    m.ops.push_back(op_sum("c", "aten::mv", Phase::forward, DType::bf16, 9, 4));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 3u);
    EXPECT_EQ(j.findings[0].layer, "c");
    EXPECT_EQ(j.findings[1].layer, "b");
    EXPECT_EQ(j.findings[2].layer, "a");
}

TEST(Judge, HostileNamesAreEscapedInSentences) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("a\x1b]0;x\n</script>", "aten::bmm\r", Phase::forward, DType::bf16, 9, 1));
    const Finding f = judge(m).findings.at(0);
    for (const std::string& text : {f.message, f.advice})
        EXPECT_EQ(text.find_first_of("\x1b\n\r"), std::string::npos);
}

TEST(RulePack, IdsAreSortedAndFound) {
    for (std::size_t i = 1; i < rule_pack().size(); ++i) EXPECT_LT(rule_pack()[i - 1].id, rule_pack()[i].id);
    EXPECT_EQ(rule_called("MPT012")->name, "swallowed-addends");
    EXPECT_EQ(rule_called("MPT999"), nullptr);
}

}  // namespace
}  // namespace mp::trace
