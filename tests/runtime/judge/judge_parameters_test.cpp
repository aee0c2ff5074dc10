// MPT027: how far an optimizer moves its parameters, against the fp32 twin.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/base/figures.hpp"
#include "runtime/judge/judge.hpp"
#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;

// A parameter that is moved `times` as far as its twin, by gradients with a relative error.
void put(RunModel& m, const std::string& name, double times, double gradient_error) {
    TensorSum p = tensor_sum(TensorKind::parameter, name, DType::fp32);
    p.twin_change_squares = 1e-4;
    p.change_squares = times * times * p.twin_change_squares;
    p.change_error_squares = 0.1 * p.twin_change_squares;
    m.tensors.push_back(p);
    TensorSum g = tensor_sum(TensorKind::gradient, name, DType::fp32);
    g.sampled_twin_squares = 1;
    g.sampled_error_squares = gradient_error * gradient_error;
    m.tensors.push_back(g);
}

RunModel run_with(double times, double gradient_error = 0.01) {
    RunModel m = healthy();
    m.tensors.clear();
    for (int i = 0; i < 9; ++i) put(m, "blocks." + std::to_string(i) + ".weight", 1, 0.01);
    put(m, "head.weight", times, gradient_error);
    m.ops.push_back(op_sum("(optimizer)", "aten::copy_", Phase::optimizer, DType::fp16, 1, 20));
    return m;
}

TEST(JudgeParameters, MPT027AnUpdateOfAnotherLength) {
    for (const double times : {30.0, 0.1, 0.0}) {
        const Judgement j = judge(run_with(times));
        ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
        const Finding& f = j.findings[0];
        EXPECT_EQ(f.rule, "MPT027");
        EXPECT_EQ(f.severity, Severity::error);
        EXPECT_EQ(f.layer, "head");
        EXPECT_EQ(f.phase, Phase::optimizer);
        EXPECT_TRUE(std::isfinite(f.value));
        EXPECT_THAT(f.message, HasSubstr(times > 0 ? "moves head.weight " + figure(times) + " times as far"
                                                   : "moves head.weight less than 0.01 times as far"));
        EXPECT_THAT(f.message, HasSubstr("although the gradients agree (error 1 %)"));
    }
}

TEST(JudgeParameters, MPT027AllOfThemALittle) {
    RunModel m = run_with(1);
    for (TensorSum& t : m.tensors) t.change_squares *= 1.5 * 1.5;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].layer, "(optimizer)");
    EXPECT_THAT(j.findings[0].message, HasSubstr("moves the parameters 1.5 times as far"));
    m.ops.pop_back();
    EXPECT_EQ(text_of(judge(m)), "") << "an optimizer in fp32 that amplifies noise";
    for (TensorSum& t : m.tensors) t.change_squares *= 4;
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::warning) << "no op explains it";
}

TEST(JudgeParameters, SoundRuns) {
    EXPECT_EQ(text_of(judge(run_with(1))), "");
    EXPECT_EQ(text_of(judge(run_with(1.2))), "");
    EXPECT_EQ(text_of(judge(run_with(3, 0.5))), "") << "its gradients differ";
    EXPECT_EQ(text_of(judge(run_with(3, 1.2))), "") << "its gradients are 0 in theory";
    RunModel m = run_with(30);
    for (TensorSum& t : m.tensors) t.last.compared = 3;
    EXPECT_EQ(text_of(judge(m)), "") << "scalars have a rule of their own";
    m = run_with(30);
    for (TensorSum& t : m.tensors) t.mastered = 1000;
    EXPECT_EQ(text_of(judge(m)), "") << "the rounding of a master";
    m = run_with(30);
    for (TensorSum& t : m.tensors) t.twin_change_squares = 0;
    EXPECT_EQ(text_of(judge(m)), "") << "nothing moved in fp32";
}

}  // namespace
}  // namespace mp::trace
