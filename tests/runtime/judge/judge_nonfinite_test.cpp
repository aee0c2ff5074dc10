// Values that are not finite, and skipped steps: a run that has the defect, and its twin that has not.

#include "runtime/judge/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

OpSum overflowing(std::string layer, Phase phase, std::int64_t step, std::uint64_t first) {
    OpSum s = op_sum(std::move(layer), phase == Phase::backward ? "aten::mm" : "aten::addmm", phase,
                     DType::fp16, 1, first);
    s.first_origin = {Rank{1}, Step{step}};
    s.at_origin = s.total;
    s.at_origin.pos_inf = s.at_origin.nonfinite_real = 3;
    s.at_origin.elements = 4096;
    s.at_origin.input_amax = 301;
    s.at_origin.twin_amax = 71'304;
    s.at_origin.first_origin = first;
    return s;
}

TEST(Judge, MPT001TheFirstOverflowComesFirst) {
    RunModel m = healthy();
    m.ops.push_back(overflowing("blocks.3.fc2", Phase::forward, 5, 40));
    m.ops.push_back(overflowing("blocks.2.fc2", Phase::forward, 5, 30));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 2u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT001");
    EXPECT_EQ(f.name, "nonfinite-value");
    EXPECT_EQ(f.severity, Severity::error);
    EXPECT_EQ(f.layer, "blocks.2.fc2");
    EXPECT_EQ(f.op, "aten::addmm");
    EXPECT_EQ(f.phase, Phase::forward);
    EXPECT_EQ(f.step, Step{5});
    EXPECT_EQ(f.rank, Rank{1});
    EXPECT_EQ(f.source, "train.py:88");
    EXPECT_THAT(f.message, HasSubstr("3 non-finite values of 4,096"));
    EXPECT_THAT(f.advice,
                HasSubstr("run blocks.2.fc2 in fp32 or bf16; lowering the loss scale does not help: the "
                          "forward value itself is 71,304"));
    EXPECT_TRUE(j.first_overflow.found);
    EXPECT_EQ(j.first_overflow.layer, "blocks.2.fc2");
    EXPECT_EQ(j.first_overflow.nonfinite, 3u);
    EXPECT_EQ(j.first_overflow.input_amax, 301);
}

TEST(Judge, MPT001WhatIsOnlyPassedOnIsSilent) {
    RunModel m = healthy();
    m.ops[1].total.nan = m.ops[1].total.nonfinite_real = 100;  // no origin: its inputs were not finite
    EXPECT_EQ(find(judge(m), "MPT001"), nullptr);
}

TEST(Judge, MPT001LostWeightsWithoutAnOrigin) {
    RunModel m = healthy();
    m.tensors[0].last.nonfinite_real = 7;
    m.tensors[0].first_nonfinite = {Rank{0}, Step{4}};
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT001"), nullptr);
    EXPECT_EQ(find(j, "MPT001")->layer, "blocks.0.fc");
    EXPECT_EQ(find(j, "MPT001")->step, Step{4});
    m.tensors[0].last.nonfinite_twin = 7;
    EXPECT_EQ(find(judge(m), "MPT001"), nullptr) << "the twin has them too";
}

TEST(Judge, MPT001ALossThatStaysNaNInBothIsNotPrecision) {
    RunModel m = healthy();
    for (std::size_t k = 4; k < 8; ++k) m.steps[k].loss = m.steps[k].twin_loss = std::nan("");
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT001"), nullptr);
    EXPECT_EQ(find(j, "MPT001")->step, Step{4});
    EXPECT_THAT(find(j, "MPT001")->message, HasSubstr("precision is not the cause"));
    m.steps[7].loss = 2;
    EXPECT_EQ(find(judge(m), "MPT001"), nullptr) << "a loss that comes back is masking";
}

// 0 / 0 in a mean of nothing, at step 4; what follows is its consequence.
OpSum invalid(std::string layer, std::int64_t step, std::uint64_t first) {
    OpSum s = op_sum(std::move(layer), "aten::div", Phase::forward, DType::fp32, 1, first);
    s.first_origin = {Rank{0}, Step{step}};
    s.at_origin = s.total;
    s.at_origin.nan = 2;
    s.at_origin.elements = 64;
    s.at_origin.first_origin = first;
    return s;
}

TEST(Judge, MPT001ANaNThatTheTwinHasTooIsNamedWhereItBegan) {
    RunModel m = healthy();
    m.ops.push_back(invalid("head", 4, 9));
    m.ops.push_back(invalid("pool", 4, 7));
    for (std::size_t k = 4; k < 8; ++k) m.steps[k].loss = m.steps[k].twin_loss = std::nan("");
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT001");
    EXPECT_EQ(f.layer, "pool");
    EXPECT_EQ(f.op, "aten::div");
    EXPECT_EQ(f.step, Step{4});
    EXPECT_THAT(f.message, HasSubstr("2 NaNs of 64 in fp32"));
    EXPECT_THAT(f.message, HasSubstr("precision is not the cause"));
    EXPECT_THAT(f.advice, HasSubstr("data of step 4"));
    EXPECT_FALSE(j.first_overflow.found);
    m.steps[4].loss = m.steps[4].twin_loss = 3;
    EXPECT_EQ(judge(m).findings.at(0).layer, "pool") << "a gradient that is NaN shows in the next loss";
}

// Compiled code gave the twin the run's own values, so what both have says nothing about fp32.
TEST(Judge, MPT001BehindCodeThatIsNotObservedTheTwinKnowsNothing) {
    RunModel m = healthy();
    m.coverage.outside = 5;
    m.ops.push_back(invalid("pool", 4, 7));
    for (std::size_t k = 4; k < 8; ++k) m.steps[k].loss = m.steps[k].twin_loss = std::nan("");
    Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].layer, "pool");
    EXPECT_THAT(j.findings[0].message, Not(HasSubstr("precision is not the cause")));
    EXPECT_THAT(j.findings[0].message, HasSubstr("what fp32 gives there is not known"));
    EXPECT_THAT(j.findings[0].advice, HasSubstr("--eager"));
    m.ops.pop_back();
    j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].layer, "(loss)");
    EXPECT_THAT(j.findings[0].message, Not(HasSubstr("precision is not the cause")));
    EXPECT_THAT(j.findings[0].advice, HasSubstr("--eager"));
}

TEST(Judge, MPT001ANaNThatTheTwinHasTooAndNothingReadsIsSilent) {
    RunModel m = healthy();
    m.ops.push_back(invalid("attention", 4, 7));
    EXPECT_EQ(text_of(judge(m)), "") << "padding";
    m.ops.back().at_origin.compared = 0;
    EXPECT_EQ(text_of(judge(m)), "") << "the logarithm of zeros alone, in both";
    m.ops.back().at_origin.nonfinite_real = 2;
    EXPECT_THAT(judge(m).findings.at(0).message, Not(HasSubstr("precision is not the cause")));
    m.ops.back().at_origin.nonfinite_real = 0;
    m.mode = Mode::watch;
    EXPECT_EQ(judge(m).findings.at(0).layer, "attention") << "without a twin nothing is shared";
}

// The steps before the last one have the loss of another value, as where a program takes gradients of several.
TEST(Judge, MPT001ARunThatEndsWithBothLossesLostNamesWhatBeganShortlyBefore) {
    RunModel m = healthy();
    m.ops.push_back(invalid("criterion", 5, 7));
    EXPECT_EQ(text_of(judge(m)), "") << "a value that nothing reads";
    m.steps[7].loss = m.steps[7].twin_loss = std::numeric_limits<double>::infinity();
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].layer, "criterion");
    EXPECT_EQ(j.findings[0].step, Step{5});
    EXPECT_THAT(j.findings[0].message, HasSubstr("precision is not the cause"));
    m.ops.back() = invalid("criterion", 3, 7);
    EXPECT_EQ(find(judge(m), "MPT001"), nullptr) << "long before: padding";
    m.ops.back() = invalid("criterion", 5, 7);
    m.steps[7].twin_loss = 2;
    EXPECT_THAT(text_of(judge(m)), Not(HasSubstr("precision is not the cause")))
        << "the twin's loss is sound";
}

// The gradient of the norm of a vector of zeros is 0 / 0, which autograd masks.
TEST(Judge, MPT001ANaNOfBackwardThatReachesNoWeightIsSilentWithoutATwin) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    m.ops.push_back(invalid("", 0, 7));
    OpSum& norm = m.ops.back();
    norm.total.phase = Phase::backward;
    EXPECT_EQ(text_of(judge(m)), "");
    m.tensors[1].last.nonfinite_real = 2;
    EXPECT_NE(find(judge(m), "MPT001"), nullptr) << "a gradient of a weight";
    m.tensors[1].last.nonfinite_real = 0;
    m.tensors[1].first_nonfinite = {Rank{0}, Step{3}};
    EXPECT_NE(find(judge(m), "MPT001"), nullptr) << "an earlier one";
    m.tensors[1].first_nonfinite = {};
    m.steps[5].loss = std::nan("");
    EXPECT_NE(find(judge(m), "MPT001"), nullptr) << "a later loss";
    m.steps[5].loss = 3;
    norm.at_origin.pos_inf = 1;
    EXPECT_NE(find(judge(m), "MPT001"), nullptr) << "an infinity may have become 0";
    norm.at_origin.pos_inf = 0;
    norm.first_origin.step = Step{7};
    EXPECT_NE(find(judge(m), "MPT001"), nullptr) << "no later loss shows it";
}

// Under no_grad, and in forward of a function with its own backward, the phase of an op is "data" without layers.
TEST(Judge, MPT001AnOverflowBesideTheModelIsNotBeforeIt) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    m.ops.push_back(overflowing("(data)", Phase::data, 0, 7));
    OpSum& cost = m.ops.back();
    cost.at_origin.nonfinite_real = 0;
    EXPECT_NE(find(judge(m), "MPT001"), nullptr);
    cost.total.dtype = DType::fp32;
    EXPECT_EQ(find(judge(m), "MPT001"), nullptr) << "a metric that divides by 0";
    cost.total.dtype = DType::fp16;
    m.ops[0].total.first = 8;
    m.ops[1].total.first = 9;
    EXPECT_EQ(find(judge(m), "MPT001"), nullptr) << "an initialisation";
}

// A ninth step, which did not end.
RunModel left(double loss) {
    RunModel m = healthy();
    m.ops.push_back(invalid("criterion", 8, 7));
    StepSummary& s = m.unfinished.emplace();
    s.step = Step{8};
    s.has_loss = s.has_twin = true;
    s.loss = s.twin_loss = loss;
    return m;
}

TEST(Judge, MPT001AStepThatIsLeftBecauseOfItsLoss) {
    const Judgement j = judge(left(std::nan("")));
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].layer, "criterion");
    EXPECT_EQ(j.findings[0].step, Step{8});
    EXPECT_THAT(j.findings[0].message, HasSubstr("the loss is lost in the step that did not end"));
    EXPECT_EQ(j.loss.answer, LossAgreement::Answer::lost_in_both);
    RunModel m = left(std::nan(""));
    m.ops.pop_back();
    EXPECT_THAT(judge(m).findings.at(0).message, HasSubstr("step 8, in which the program ended"));
}

TEST(Judge, MPT001WhatAnEvaluationMakesIsSilent) {
    EXPECT_EQ(text_of(judge(left(2))), "");
    RunModel m = left(2);
    m.mode = Mode::watch;
    EXPECT_EQ(text_of(judge(m)), "") << "fp32";
    m.ops.back().total.dtype = DType::fp16;
    EXPECT_EQ(judge(m).findings.at(0).layer, "criterion");
}

TEST(Judge, MPT001GradientsAreLostInTheStepThatDidNotEnd) {
    RunModel m = left(2);
    m.ops.back().total.phase = Phase::backward;
    m.unfinished->lost_gradients = 3;
    EXPECT_THAT(judge(m).findings.at(0).message, HasSubstr("gradients are lost"));
}

TEST(Judge, MPT001AnExceptionAfterAValueWithoutALoss) {
    RunModel m = left(2);
    m.unfinished->has_loss = m.unfinished->has_twin = false;
    EXPECT_EQ(text_of(judge(m)), "");
    m.ranks[0].ended_by = "KeyboardInterrupt";
    EXPECT_EQ(find(judge(m), "MPT001"), nullptr);
    m.ranks[0].ended_by = "ValueError";
    EXPECT_NE(find(judge(m), "MPT001"), nullptr);
}

TEST(Judge, MPT001ScaledGradientsOfTheStepThatDidNotEnd) {
    RunModel m = healthy();
    m.unfinished.emplace().step = Step{8};
    m.ops.push_back(overflowing("fc", Phase::backward, 8, 40));
    EXPECT_NE(find(judge(m), "MPT001"), nullptr);
    m.steps.back().has_loss_scale = true;
    EXPECT_EQ(find(judge(m), "MPT001"), nullptr) << "the scaler may skip it";
}

TEST(Judge, MPT002SkipsAfterWarmUp) {
    RunModel m = healthy();
    scaled(m, 1000, {0, 1, 2, 400, 700});
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT002"), nullptr) << text_of(j);
    EXPECT_EQ(find(j, "MPT002")->value, 2);
    EXPECT_EQ(find(j, "MPT002")->step, Step{400});
    RunModel good = healthy();
    scaled(good, 1000, {0, 1, 2, 400});
    EXPECT_EQ(text_of(judge(good)), "");
}

TEST(Judge, MPT002ManyInARow) {
    RunModel m = healthy();
    scaled(m, 10'000, {500, 501, 502, 503});
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT002"), nullptr);
    EXPECT_THAT(find(j, "MPT002")->message, HasSubstr("4 in a row from step 500"));
    RunModel good = healthy();
    scaled(good, 10'000, {500, 501, 502});
    EXPECT_EQ(text_of(judge(good)), "");
}

TEST(Judge, MPT003AScaleThatOnlyFalls) {
    RunModel m = healthy();
    scaled(m, 10'000, {200, 600, 1200, 2200, 3300});
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT003"), nullptr) << text_of(j);
    EXPECT_EQ(find(j, "MPT003")->value, 5);
    EXPECT_EQ(find(j, "MPT003")->step, Step{3301});
    RunModel good = healthy();
    scaled(good, 10'000, {200, 600, 1200, 2200});
    EXPECT_EQ(text_of(judge(good)), "");
}

TEST(Judge, MPT004AForwardOverflowIsNotTheScales) {
    RunModel m = healthy();
    scaled(m, 60, {17, 34, 35, 36});
    const OpSum op = overflowing("blocks.2.mlp.up", Phase::forward, 17, 30);
    for (SkipFacts& s : m.skips)
        s.origin = op.at_origin, s.origin.layer = "blocks.2.mlp.up", s.origin_rank = Rank{1};
    const Judgement j = judge(m);
    const Finding* f = find(j, "MPT004");
    ASSERT_NE(f, nullptr) << text_of(j);
    EXPECT_EQ(f->layer, "blocks.2.mlp.up");
    EXPECT_EQ(f->phase, Phase::forward);
    EXPECT_EQ(f->step, Step{17});
    EXPECT_THAT(f->message, HasSubstr("4 steps of 60 skipped by forward overflow (steps 17, 34, 35, 36)"));
    EXPECT_EQ(find(j, "MPT002"), nullptr) << "these skips are judged once";
    EXPECT_NEAR(j.samples_lost, 4.0 / 60, 1e-12);
}

TEST(Judge, MPT004RanksDisagree) {
    RunModel m = healthy();
    scaled(m, 60, {17});
    m.skips[0].stepped_by = {Rank{1}};
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT004"), nullptr);
    EXPECT_THAT(find(j, "MPT004")->message, HasSubstr("ranks disagree on skipping step 17"));
    EXPECT_EQ(find(j, "MPT004")->phase, Phase::optimizer);
    EXPECT_EQ(&j.findings[0], find(j, "MPT004"));
    m.ops.push_back(overflowing("blocks.2.fc2", Phase::forward, 19, 30));
    EXPECT_EQ(judge(m).findings[0].rule, "MPT004") << "what overflows later is a consequence";
    m.ops.back() = overflowing("blocks.2.fc2", Phase::forward, 9, 30);
    EXPECT_EQ(judge(m).findings[0].rule, "MPT001") << "it began earlier";
}

TEST(Judge, MPT001ScaledGradientsOfSkippedStepsAreTheScales) {
    RunModel m = healthy();
    scaled(m, 60, {0, 1});
    m.ops.push_back(overflowing("(update)", Phase::optimizer, 0, 30));  // p.grad.div_() behind an all_reduce
    EXPECT_EQ(text_of(judge(m)), "");
    m.ops.push_back(overflowing("blocks.2.fc2", Phase::forward, 5, 40));
    EXPECT_EQ(judge(m).first_overflow.layer, "blocks.2.fc2") << "the first that a lower scale does not cure";
    m.ops.back() = overflowing("(update)", Phase::optimizer, 5, 40);
    EXPECT_NE(find(judge(m), "MPT001"), nullptr) << "nobody skipped that step";
}

}  // namespace
}  // namespace mp::trace
