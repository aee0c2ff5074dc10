#include "runtime/judge/skips.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/judge/judge.hpp"
#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using testing::HasSubstr;

OpRecord origin(Phase phase, double twin_amax) {
    OpRecord o;
    o.layer = "blocks.2.fc2";
    o.op = phase == Phase::forward ? "aten::addmm" : "aten::mm";
    o.phase = phase;
    o.dtype = DType::fp16;
    o.elements = 4096;
    o.pos_inf = 3;
    o.nonfinite_real = 3;
    o.compared = 4093;
    o.twin_amax = twin_amax;
    o.input_amax = 301.5;
    o.origins = 1;
    return o;
}

SkipFacts facts(OpRecord o = {}) {
    SkipFacts f;
    f.step = Step{17};
    f.skipped_by = {Rank{0}, Rank{1}};
    f.has_scale = true;
    f.loss_scale = 65536;
    f.origin = std::move(o);
    f.origin_rank = Rank{1};
    f.gradients.push_back({.name = "head.weight",
                           .rank = Rank{0},
                           .dtype = DType::fp16,
                           .nonfinite = 5,
                           .elements = 100,
                           .twin_amax = 131072});
    return f;
}

TEST(SkipVerdict, ABackwardThatFitsAtALowerScaleBlamesTheScale) {
    const SkipVerdict v = verdict_of(facts(origin(Phase::backward, 90'000)));
    EXPECT_EQ(v.cause, SkipCause::scale_too_high);
    EXPECT_EQ(v.layer, "blocks.2.fc2");
    EXPECT_EQ(v.parameter, "head.weight");
    EXPECT_EQ(v.rank, Rank{1});
    EXPECT_FALSE(v.ranks_disagree);
    EXPECT_THAT(v.why, HasSubstr("90,000"));
    EXPECT_THAT(v.why, HasSubstr("it fits at scale 32,768"));
}

TEST(SkipVerdict, GradientsAloneBlameTheScale) {
    const SkipVerdict v = verdict_of(facts());
    EXPECT_EQ(v.cause, SkipCause::scale_too_high);
    EXPECT_EQ(v.rank, Rank{0}) << "the rank of the gradient";
    EXPECT_THAT(v.why, HasSubstr("head.weight"));
}

TEST(SkipVerdict, WithoutATwinTheScaleIsPresumed) {
    SkipFacts f = facts();
    f.gradients[0].twin_amax = 0;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::scale_too_high);
    EXPECT_THAT(verdict_of(f).why, HasSubstr("no twin"));
    f.loss_scale = 1;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::unknown) << "a scale of 1 cannot be lowered";
}

// A run without a twin measures the operations of some steps only.
TEST(SkipVerdict, AStepThatWasNotMeasuredIsNotTheScalesFaultAfterAForwardOverflow) {
    SkipFacts measured = facts(origin(Phase::forward, 0));
    measured.origin.compared = measured.origin.nonfinite_real = 0;
    SkipFacts not_measured = facts();
    not_measured.gradients[0].twin_amax = 0;
    not_measured.step = Step{18};
    not_measured.loss_scale = 32768;
    auto verdicts = verdicts_of({measured, not_measured});
    EXPECT_EQ(verdicts[0].cause, SkipCause::forward_overflow);
    EXPECT_EQ(verdicts[1].cause, SkipCause::unknown);
    EXPECT_THAT(verdicts[1].why, HasSubstr("not measured, and step 17 was skipped by forward overflow"));
    not_measured.loss_scale = 131072;
    EXPECT_EQ(verdicts_of({measured, not_measured})[1].cause, SkipCause::scale_too_high)
        << "the scale had grown";
    measured.origin.phase = Phase::backward;
    not_measured.loss_scale = 32768;
    EXPECT_EQ(verdicts_of({measured, not_measured})[1].cause, SkipCause::scale_too_high);
}

TEST(SkipVerdict, AGradientThatNoScaleHelpsIsNotTheScalesFault) {
    SkipFacts f = facts(origin(Phase::backward, 1e10));
    EXPECT_EQ(verdict_of(f).cause, SkipCause::unknown);
    EXPECT_THAT(verdict_of(f).why, HasSubstr("no scale"));
    f.has_scale = false;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::unknown);
}

TEST(SkipVerdict, AWideGradientThatFitsPointsBeforeItself) {
    SkipFacts f = facts();
    f.gradients[0].dtype = DType::fp32;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::scale_too_high);
    EXPECT_THAT(verdict_of(f).why, HasSubstr("it began in a gradient before it"));
    f.loss_scale = 1;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::unknown);
}

TEST(SkipVerdict, TheScaledLossIsUnderTheScale) {
    OpRecord o = origin(Phase::forward, 655'360);
    o.layer = "(scaler)";
    EXPECT_EQ(verdict_of(facts(o)).cause, SkipCause::scale_too_high);
}

TEST(SkipVerdict, AForwardOverflowNamesItsFigures) {
    const SkipVerdict v = verdict_of(facts(origin(Phase::forward, 71'304)));
    EXPECT_EQ(v.cause, SkipCause::forward_overflow);
    EXPECT_THAT(v.why, HasSubstr("71,304"));
    EXPECT_THAT(v.why, HasSubstr("65,504"));
    EXPECT_THAT(v.why, HasSubstr("at most 302;"));
    EXPECT_THAT(v.why, HasSubstr("lowering the loss scale does not help"));
}

TEST(SkipVerdict, WithoutATwinInfinityIsOverflowAndNaNIsInvalid) {
    OpRecord o = origin(Phase::forward, 0);
    o.compared = o.nonfinite_real = 0;
    EXPECT_EQ(verdict_of(facts(o)).cause, SkipCause::forward_overflow);
    o.pos_inf = 0;
    o.nan = 3;
    EXPECT_EQ(verdict_of(facts(o)).cause, SkipCause::invalid_op);
}

TEST(SkipVerdict, WhatTheTwinHasTooIsInvalid) {
    OpRecord o = origin(Phase::forward, 12);
    o.nonfinite_real = 0;
    EXPECT_EQ(verdict_of(facts(o)).cause, SkipCause::invalid_op);
    SkipFacts f = facts();
    f.gradients[0].nonfinite_twin = 5;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::invalid_op);
}

TEST(SkipVerdict, BehindCodeThatIsNotObservedTheTwinIsNotAsked) {
    OpRecord o = origin(Phase::forward, 12);
    o.nonfinite_real = 0;
    o.pos_inf = 0;
    o.nan = 3;
    SkipFacts f = facts(o);
    f.gradients[0].nonfinite_twin = 5;
    EXPECT_TRUE(verdict_of(f).also_in_twin);
    const SkipVerdict v = verdicts_of(without_twin({f})).at(0);
    EXPECT_EQ(v.cause, SkipCause::invalid_op);
    EXPECT_FALSE(v.also_in_twin);
    EXPECT_THAT(v.why, testing::Not(HasSubstr("twin")));
    f.origin = {};
    EXPECT_THAT(verdicts_of(without_twin({f})).at(0).why, testing::Not(HasSubstr("in the fp32 twin")));
}

// copy_ of scaled gradients into a 16-bit buffer, behind the backward.
TEST(SkipVerdict, WhatHoldsScaledGradientsBlamesTheScale) {
    OpRecord o = origin(Phase::optimizer, 163'347);
    o.op = "aten::copy_";
    o.layer = "(update)";
    const SkipVerdict v = verdict_of(facts(o));
    EXPECT_EQ(v.cause, SkipCause::scale_too_high);
    EXPECT_THAT(v.why, HasSubstr("it fits at scale 16,384"));
}

TEST(SkipVerdict, ReductionsOfFiniteInputs) {
    SkipFacts f = facts();
    f.reductions_made_nonfinite = 12;
    f.reduction_op = "all_reduce";
    f.loss_scale = 1;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::reduction_overflow) << "no scale of 1 or more helps";
    EXPECT_THAT(verdict_of(f).why,
                HasSubstr("all_reduce of the gradient of head.weight made 12 non-finite values"));
    f.has_scale = false;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::reduction_overflow);
    f.has_scale = true;
    f.loss_scale = 1024;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::scale_too_high);
    EXPECT_THAT(verdict_of(f).why, HasSubstr("a sum over 2 ranks fits at scale 512"));
    OpRecord o = origin(Phase::backward, 90'000);
    o.op = "c10d::allreduce_";
    EXPECT_EQ(verdict_of(facts(o)).cause, SkipCause::reduction_overflow);
    o = origin(Phase::optimizer, 90'000);
    o.layer = "(clipping)";
    EXPECT_EQ(verdict_of(facts(o)).cause, SkipCause::reduction_overflow) << "a norm's sum of squares";
}

// A skip while GradScaler looks for its scale shows that the scale is too high. Once a step was taken at that scale,
// the sum over ranks is the narrowest place.
TEST(SkipVerdict, AReductionAtAScaleThatSteppedBeforeIsTheCause) {
    SkipFacts f = facts();
    f.reductions_made_nonfinite = 12;
    f.reduction_op = "all_reduce";
    f.loss_scale = 1024;
    f.step = Step{5};
    RunModel m = test::healthy();
    m.skips = {f};
    for (StepSummary& s : m.steps) {
        s.has_loss_scale = true;
        s.loss_scale = s.step < f.step ? 1024 : 512;
        s.skipped = s.step == f.step;
    }
    EXPECT_EQ(judge(m).skips[0].cause, SkipCause::reduction_overflow);
    EXPECT_THAT(judge(m).findings, testing::IsEmpty()) << "one skip is within the limits";
    for (StepSummary& s : m.steps) s.loss_scale = s.step < f.step ? 512 : 1024;
    EXPECT_EQ(judge(m).skips[0].cause, SkipCause::scale_too_high);
}

TEST(SkipVerdict, ManyReductionsThatOverflowAdviseTheirCure) {
    RunModel m = test::healthy();
    m.step_count = 1000;
    for (int k = 200; k < 220; k += 4) {
        SkipFacts f = facts();
        f.reductions_made_nonfinite = 12;
        f.reduction_op = "reduce_scatter";
        f.loss_scale = 1024;
        f.step = Step{k};
        m.skips.push_back(f);
    }
    for (StepSummary& s : m.steps) s.has_loss_scale = true, s.loss_scale = 1024;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u);
    EXPECT_EQ(j.findings[0].rule, "MPT002");
    EXPECT_THAT(j.findings[0].message,
                HasSubstr("reduce_scatter of the gradient of head.weight made 12 non-finite values"));
    EXPECT_THAT(j.findings[0].advice, HasSubstr("reduce in fp32"));
}

TEST(SkipVerdict, BadData) {
    OpRecord o = origin(Phase::data, 0);
    EXPECT_EQ(verdict_of(facts(o)).cause, SkipCause::bad_data);
    SkipFacts f = facts();
    f.loss_finite = f.twin_loss_finite = false;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::bad_data);
}

TEST(SkipVerdict, NothingSeenIsUnknown) {
    SkipFacts f = facts();
    f.gradients.clear();
    EXPECT_EQ(verdict_of(f).cause, SkipCause::unknown);
    f.loss_finite = false;
    EXPECT_EQ(verdict_of(f).cause, SkipCause::unknown);
}

TEST(SkipVerdict, RanksThatDisagreeAreNamed) {
    SkipFacts f = facts();
    f.skipped_by = {Rank{0}};
    f.stepped_by = {Rank{1}, Rank{2}};
    const SkipVerdict v = verdict_of(f);
    EXPECT_TRUE(v.ranks_disagree);
    EXPECT_THAT(v.why, HasSubstr("ranks 0 skipped it, ranks 1, 2 stepped"));
}

TEST(SkipVerdict, NamesAreEscaped) {
    OpRecord o = origin(Phase::forward, 71'304);
    o.layer = "a\x1b[31m\n";
    EXPECT_EQ(verdict_of(facts(o)).why.find('\x1b'), std::string::npos);
    EXPECT_EQ(verdict_of(facts(o)).why.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace mp::trace
