// The loss against its twin's: runs whose loss departs from it, and sound ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/judge/judge.hpp"
#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;
using Answer = LossAgreement::Answer;

// 40 steps whose twin learns; from step 20 on the loss is `times` as high.
RunModel departing(double times) {
    RunModel m = healthy();
    m.steps.clear();
    m.step_count = 40;
    for (int k = 0; k < 40; ++k) {
        StepSummary s;
        s.step = Step{k};
        s.ranks = 1;
        s.has_loss = s.has_twin = true;
        s.twin_loss = 4 * std::exp(-k / 10.0);
        s.loss = s.twin_loss * (k < 20 ? 1 + 1e-3 * (k % 2 ? 1 : -1) : times);
        m.steps.push_back(s);
    }
    m.ops_by_dtype = {{DType::fp32, 900}, {DType::bf16, 100}};
    return m;
}

OpSum difference(DType dtype, double amplification, std::uint64_t first = 9) {
    OpSum s = op_sum("criterion", "aten::sub", Phase::forward, dtype, 0.1, first);
    s.total.loc_error_squares = 0;
    s.total.amplification = amplification;
    s.total.input_error = 0.02;
    return s;
}

TEST(JudgeDeparture, MPT024ACriterionThatCancels) {
    RunModel m = departing(2.2);
    m.ops.push_back(difference(DType::bf16, 400));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT024");
    EXPECT_EQ(f.severity, Severity::error);
    EXPECT_EQ(f.layer, "criterion");
    EXPECT_EQ(f.op, "aten::sub");
    EXPECT_EQ(f.step, Step{20});
    EXPECT_THAT(f.message, HasSubstr("2.2 times as high"));
    EXPECT_THAT(f.message, HasSubstr("sub subtracts nearly equal values in bf16 near the loss"));
    EXPECT_THAT(f.advice, HasSubstr("criterion in fp32"));
    EXPECT_EQ(j.loss.answer, Answer::above);
}

// A sound training after the broken one, in one process.
TEST(JudgeDeparture, MPT024OfTheFirstOfTwoTrainings) {
    RunModel m = departing(2.2);
    m.ops.push_back(difference(DType::bf16, 400));
    for (StepSummary s : departing(1).steps) {
        s.step.value += 40;
        m.steps.push_back(s);
    }
    EXPECT_EQ(judge(m).loss.answer, Answer::agrees) << "one training of 80 steps, as far as is known";
    m.trainings = {Step{40}};
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT024");
    EXPECT_EQ(j.findings[0].step, Step{20});
    EXPECT_THAT(j.findings[0].message, HasSubstr("(training 1 of 2)"));
    EXPECT_EQ(j.loss.answer, Answer::above);
    EXPECT_EQ(j.loss.last_loss, m.steps[39].loss);
    EXPECT_EQ(which_loss(j.loss), "training 1 of 2");
}

TEST(JudgeDeparture, MPT024OfTheSecondOptimizer) {
    RunModel m = departing(1);
    m.ops.push_back(difference(DType::bf16, 400));
    EXPECT_EQ(text_of(judge(m)), "");
    EXPECT_EQ(which_loss(judge(m).loss), "");
    m.others.push_back({1, departing(2.2).steps});
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_THAT(j.findings[0].message, HasSubstr("(optimizer 2 of 2)"));
    m.others[0].steps.back().loss = NAN;
    EXPECT_EQ(judge(m).loss.answer, Answer::lost) << "the loss of one network alone is lost";
}

// A difference that rounds to 0 makes a loss that is too good.
TEST(JudgeDeparture, MPT024ACriterionThatLosesWhatItMeasures) {
    RunModel m = departing(0);
    m.ops.push_back(difference(DType::bf16, 400));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT024");
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_EQ(j.findings[0].value, 1);
    EXPECT_THAT(j.findings[0].message, HasSubstr("the loss ends at 0 where the fp32 twin's ends at"));
    EXPECT_THAT(j.findings[0].message, testing::Not(HasSubstr("times as high")));
    EXPECT_EQ(j.loss.answer, Answer::below);
}

// The loss goes away slowly from a defect that is there from the first step on.
TEST(JudgeDeparture, MPT024NamesTheFirstStepOfItsCause) {
    RunModel m = departing(2.2);
    m.ops.push_back(difference(DType::bf16, 400));
    m.map.push_back(
        {.layer = "criterion", .phase = Phase::forward, .order = 9, .cells = std::vector<Cell>(40)});
    for (std::size_t i = 0; i < 40; ++i) m.map.back().cells[i].cum_phi = i < 2 ? 1.0F : 400.0F;
    ASSERT_NE(find(judge(m), "MPT024"), nullptr);
    EXPECT_EQ(find(judge(m), "MPT024")->step, Step{2});
    EXPECT_THAT(find(judge(m), "MPT024")->message, HasSubstr("it departs from step 20 on"));
    m.column_steps = 2;
    EXPECT_EQ(find(judge(m), "MPT024")->step, Step{20}) << "several steps in a column";
}

TEST(JudgeDeparture, AnOpBeforeAMatrixProductIsNotTheCriterion) {
    RunModel m = departing(2.2);
    m.ops.push_back(difference(DType::bf16, 400, 2));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_THAT(j.findings[0].advice, HasSubstr("sub and its inputs in fp32"));
    m.ops.push_back(difference(DType::bf16, 380, 9));
    EXPECT_THAT(judge(m).findings.at(0).advice, HasSubstr("criterion in fp32")) << "nearer to the loss";
}

TEST(JudgeDeparture, ACriterionInFp32IsAWarning) {
    RunModel m = departing(2.2);
    m.ops.push_back(difference(DType::fp32, 400));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].severity, Severity::warning);
    EXPECT_THAT(j.findings[0].advice, HasSubstr("last layer in fp32"));
}

TEST(JudgeDeparture, NothingThatExplainsIt) {
    RunModel m = departing(1.8);
    EXPECT_EQ(text_of(judge(m)), "") << "two sound runs may part so far";
    m.ops.push_back(difference(DType::bf16, 20));
    EXPECT_EQ(text_of(judge(m)), "") << "one rounding costs 3 %";
    for (StepSummary& s : m.steps)
        if (s.step.value >= 20) s.twin_loss = 1, s.loss = 2.5;
    ASSERT_NE(find(judge(m), "MPT024"), nullptr);
    EXPECT_EQ(find(judge(m), "MPT024")->severity, Severity::warning) << "far apart";
    m.coverage.flips = 1;
    EXPECT_EQ(text_of(judge(m)), "") << "the run's decisions steer the twin";
}

TEST(JudgeDeparture, ACauseInBackward) {
    RunModel m = departing(2.2);
    OpSum s = op_sum("head", "aten::mul", Phase::backward, DType::bf16, 1, 5);
    s.total.amplification = 300;
    s.total.error_squares = 0.5 * 0.5 * s.total.twin_squares;
    m.ops.push_back(s);
    EXPECT_EQ(text_of(judge(m)).find("head"), std::string::npos) << "the gradients agree";
    m.steps.front().gradient_error = 0.5;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].layer, "head");
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_THAT(j.findings[0].message, HasSubstr("mul of backward in bf16"));
    m.coverage.flips = 4096;
    EXPECT_EQ(text_of(judge(m)), "") << "the gradients are off because the twin took the run's choices";
}

TEST(JudgeDeparture, SilentWhereAnotherFindingExplainsIt) {
    RunModel m = departing(2.2);
    m.ops.push_back(difference(DType::bf16, 400));
    m.ops.push_back(op_sum("blocks.1.norm", "aten::var", Phase::forward, DType::bf16, 8, 5));
    const Judgement j = judge(m);
    EXPECT_EQ(find(j, "MPT024"), nullptr);
    EXPECT_NE(find(j, "MPT010"), nullptr);
}

// The weights of run and twin are the same in the first steps, so what the loss is off by is made of roundings.
TEST(JudgeDeparture, ALossThatIsMadeOfRoundings) {
    RunModel m = departing(1);
    for (StepSummary& s : m.steps) s.loss *= s.step.value % 2 ? 1.7 : 0.3;
    EXPECT_EQ(text_of(judge(m)), "") << "nothing explains it";
    m.ops.push_back(difference(DType::bf16, 40));
    m.ops.back().total.prop_error_squares = 0.36 * m.ops.back().total.loc_squares;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_EQ(j.findings[0].step, Step{0});
    EXPECT_THAT(j.findings[0].message,
                HasSubstr("off by 70 % of the fp32 loss in a typical one of the first steps"));
    EXPECT_THAT(j.findings[0].message, HasSubstr("grows 40-fold: its results are off by 60 %"));
    m.ops.back().total.amplification = 2;
    EXPECT_EQ(text_of(judge(m)), "") << "its inputs are as wrong";
    m.ops.back().total.amplification = 40;
    for (StepSummary& s : m.steps)
        if (s.step.value < 6) s.loss = s.twin_loss;
    EXPECT_EQ(text_of(judge(m)), "") << "the two went different ways";
}

TEST(JudgeDeparture, ALossThatDepartsShortlyBeforeTheEnd) {
    RunModel m = departing(1);
    for (StepSummary& s : m.steps)
        if (s.step.value >= 32) s.loss = 3 * s.twin_loss;
    const Judgement j = judge(m);
    EXPECT_EQ(j.loss.answer, Answer::above);
    EXPECT_EQ(j.loss.begins, Step{32});
    m = departing(1);
    m.steps.resize(80, m.steps.back());
    for (std::size_t k = 40; k < m.steps.size(); ++k) {
        m.steps[k].step = Step{static_cast<std::int64_t>(k)};
        m.steps[k].loss = m.steps[k].twin_loss * (k < 72 ? 1.001 : 3);
    }
    EXPECT_EQ(judge(m).loss.answer, Answer::above);
    EXPECT_EQ(judge(m).loss.steps, 8u);
    EXPECT_EQ(judge(m).loss.begins, Step{72});
    ASSERT_NE(find(judge(m), "MPT024"), nullptr);
    EXPECT_THAT(find(judge(m), "MPT024")->advice, HasSubstr("shortly before step 72"));
    for (std::size_t k = 40; k < 72; ++k) m.steps[k].loss = m.steps[k].twin_loss * (k % 2 ? 2 : 0.5);
    EXPECT_EQ(judge(m).loss.answer, Answer::scattered) << "it did not agree before";
}

TEST(JudgeDeparture, SoundRuns) {
    RunModel m = departing(1.05);
    m.ops.push_back(difference(DType::bf16, 400));
    EXPECT_EQ(text_of(judge(m)), "");
    EXPECT_EQ(judge(m).loss.answer, Answer::agrees);
    EXPECT_NEAR(judge(m).loss.farthest, 0.05, 1e-9);
    EXPECT_TRUE(judge(m).loss.one_sided);
    m = departing(1);
    m.ops.push_back(difference(DType::bf16, 400));
    for (StepSummary& s : m.steps) s.loss *= s.step.value % 3 == 0 ? 0.5 : 2;
    EXPECT_EQ(text_of(judge(m)), "") << "either sign";
    EXPECT_EQ(judge(m).loss.answer, Answer::scattered);
    EXPECT_FALSE(judge(m).loss.one_sided);
    m = departing(0.5);
    EXPECT_EQ(text_of(judge(m)), "") << "a run that is luckier than its twin";
    EXPECT_EQ(judge(m).loss.answer, Answer::below);
    m.ops.push_back(difference(DType::bf16, 400, 4));
    m.ops.push_back(op_sum("head", "aten::mm", Phase::forward, DType::bf16, 1, 8));
    EXPECT_EQ(text_of(judge(m)), "") << "an op before a product, which averages its errors";
    m.steps.clear();
    EXPECT_EQ(judge(m).loss.answer, Answer::not_compared);
}

TEST(JudgeDeparture, AMeasuredNoiseFloorReplacesTheLimits) {
    RunModel m = departing(1.05);
    m.ops.push_back(difference(DType::bf16, 400));
    const auto with_noise = [&](double share) {
        for (StepSummary& s : m.steps) s.noise = share * s.twin_loss;
        return judge(m);
    };
    Judgement j = with_noise(0.002);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT024");
    EXPECT_EQ(j.findings[0].severity, Severity::error) << "5 % is 25 times the floor";
    EXPECT_NEAR(j.loss.noise, 0.002, 1e-9);
    EXPECT_EQ(text_of(with_noise(0.02)), "") << "5 % is 2.5 times the floor";
    EXPECT_EQ(j.loss.answer, Answer::above);
    for (StepSummary& s : m.steps)
        if (s.step.value >= 20) s.loss = 2.2 * s.twin_loss;
    EXPECT_EQ(text_of(with_noise(0.5)), "") << "a training that one rounding throws off its way";
    EXPECT_NE(find(with_noise(0.1), "MPT024"), nullptr);
}

TEST(JudgeDeparture, LossesThatAreNotFinite) {
    RunModel m = departing(1);
    m.steps.back().loss = NAN;
    EXPECT_EQ(judge(m).loss.answer, Answer::lost);
    m.steps.back().skipped = 1;
    EXPECT_EQ(judge(m).loss.answer, Answer::lost) << "skipped, because the loss is lost";
    m.steps.back().twin_loss = NAN;
    EXPECT_EQ(judge(m).loss.answer, Answer::lost_in_both);
    EXPECT_TRUE(judge(m).inconclusive.empty());
    m.steps.back().loss = 1;
    EXPECT_EQ(judge(m).loss.answer, Answer::lost_in_twin);
    EXPECT_THAT(judge(m).inconclusive, testing::ElementsAre(testing::HasSubstr("twin is not finite")));
}

TEST(JudgeDeparture, ALossBelowZeroIsComparedWithItsSpan) {
    RunModel m = departing(1);
    for (StepSummary& s : m.steps) s.twin_loss -= 3.9, s.loss = s.twin_loss + 0.1;
    EXPECT_EQ(judge(m).loss.answer, Answer::agrees) << "0.1 of a span of 3.9";
}

TEST(JudgeDeparture, NearTheLossMPT013IsLeftToTheLoss) {
    RunModel m = healthy();
    OpSum s = difference(DType::bf16, 100);
    s.total.prop_error_squares = 0.3 * 0.3 * s.total.loc_squares;
    s.total.input_error = 0.003;
    m.ops.push_back(s);
    EXPECT_EQ(text_of(judge(m)), "") << "the loss agrees: a good fit";
    for (StepSummary& each : m.steps) each.has_twin = false;
    EXPECT_NE(find(judge(m), "MPT013"), nullptr) << "no loss to tell";
}

}  // namespace
}  // namespace mp::trace
