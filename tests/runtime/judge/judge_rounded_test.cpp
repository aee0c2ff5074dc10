// MPT028: fp32 parameters whose values the program rounds to 16 bits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/judge/judge.hpp"
#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;

// A rounding leaves the relative error `lost` in the updates of steps 1 to `last`.
RunModel run_with(double lost, std::int64_t last = 4) {
    RunModel m = healthy();
    TensorSum p = tensor_sum(TensorKind::parameter, "head.weight", DType::fp32);
    p.first_rounded = Step{1};
    p.last_rounded = Step{last};
    p.narrow = DType::bf16;
    p.change_squares = p.rounded_change_squares = 1e-4;
    p.rounding_squares = lost * lost * p.rounded_change_squares;
    m.tensors = {p};
    return m;
}

TEST(JudgeRounded, MPT028WeightsThatAreRoundedAfterEachStep) {
    const Judgement j = judge(run_with(0.5));
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT028");
    EXPECT_EQ(f.severity, Severity::error);
    EXPECT_EQ(f.layer, "head");
    EXPECT_EQ(f.phase, Phase::optimizer);
    EXPECT_EQ(f.step, Step{1});
    EXPECT_THAT(f.message, HasSubstr("fp32 parameter head.weight holds only values of bf16"));
    EXPECT_THAT(f.message, HasSubstr("an error of 50 % in each update"));
    EXPECT_EQ(judge(run_with(0.05)).findings.at(0).severity, Severity::warning)
        << "most of the update is right";
}

TEST(JudgeRounded, NamesTheWorstAndCountsTheOthers) {
    RunModel m = run_with(0.3);
    m.tensors.push_back(m.tensors[0]);
    m.tensors[0].name = "first.weight";
    m.tensors[1].rounding_squares *= 4;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].layer, "head");
    EXPECT_THAT(j.findings[0].message, HasSubstr("the same holds for 1 other parameter"));
}

TEST(JudgeRounded, SoundRuns) {
    EXPECT_EQ(text_of(judge(run_with(0.5, 1))), "") << "loaded once";
    RunModel m = run_with(0.5);
    m.tensors[0].mastered = 100;
    EXPECT_EQ(text_of(judge(m)), "") << "a rank has its master";
    m = run_with(0.5);
    TensorSum low = tensor_sum(TensorKind::parameter, "low", DType::bf16);
    low.mastered = 100;
    m.tensors.push_back(low);
    EXPECT_EQ(text_of(judge(m)), "") << "the copies of 16-bit weights are MPT040's";
    m = run_with(0.5);
    m.tensors[0].change_squares = 0;
    EXPECT_EQ(text_of(judge(m)), "") << "a bias of zeros that never moves";
    m = run_with(0.5);
    m.tensors[0].first_rounded = m.tensors[0].last_rounded = {};
    EXPECT_EQ(text_of(judge(m)), "");
}

}  // namespace
}  // namespace mp::trace
