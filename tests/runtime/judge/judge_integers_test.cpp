// What is judged from counts and the order of ops, without a twin: integers that a format lacks, gradients that it adds
// up, gradients that are clipped with their loss scale.

#include "runtime/judge/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;

// 32 backward passes a step, whose gradients of one layer are added up in `dtype`; sampled steps: two.
RunModel accumulating(DType dtype, std::int32_t backwards) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    m.steps[0].sampled = m.steps[1].sampled = true;
    for (StepSummary& s : m.steps) s.backwards = backwards;
    PlaceTotal weights;
    weights.place.role = TensorRole::parameter;
    weights.place.layer = "fc";
    weights.place.dtype = dtype;
    weights.place.elements = 100;
    weights.place.tensors = 1;
    m.places.push_back(weights);
    m.ops.push_back(op_sum("fc", "aten::add_", Phase::backward, DType::bf16, 1, 30));
    OpRecord& op = m.ops.back().total;
    op.calls = 2 * 31;
    op.elements = op.calls * 100;
    op.compared = op.loc_compared = 0;
    return m;
}

TEST(Judge, MPT012GradientsThatAreAddedUpInBf16) {
    const Judgement j = judge(accumulating(DType::bf16, 32));
    const Finding* const f = find(j, "MPT012");
    ASSERT_NE(f, nullptr) << text_of(j);
    EXPECT_EQ(f->severity, Severity::warning);
    EXPECT_EQ(f->layer, "fc");
    EXPECT_THAT(f->message, HasSubstr("gradients of 32 micro-batches a step are added up in bf16"));
    EXPECT_EQ(find(judge(accumulating(DType::bf16, 16)), "MPT012"), nullptr) << "2.2 floors";
    EXPECT_EQ(find(judge(accumulating(DType::fp32, 32)), "MPT012"), nullptr) << "added up in fp32";
    RunModel m = accumulating(DType::bf16, 32);
    m.ops.back().total.calls = 20;
    m.ops.back().total.elements = 20 * 100;
    EXPECT_EQ(find(judge(m), "MPT012"), nullptr) << "too few";
    m.ops.back().total.calls = 62;
    m.ops.back().total.elements = 62 * 800;
    EXPECT_EQ(find(judge(m), "MPT012"), nullptr) << "a sum of the graph, not of the gradients";
    m.ops.back().total.calls = 64;
    m.ops.back().total.elements = 64 * 100;
    EXPECT_EQ(find(judge(m), "MPT012"), nullptr) << "a weight that is used twice";
}

// The twin's difference has the addends' error too, so it is no measure of what the additions make.
TEST(Judge, MPT012GradientsThatAreAddedUpBesideATwin) {
    const auto off_by = [](double phi, double introduced) {
        RunModel m = accumulating(DType::bf16, 32);
        m.mode = Mode::trajectory;
        OpRecord& op = m.ops.back().total;
        const double floor = one_rounding_floor(DType::bf16);
        op.compared = op.loc_compared = op.elements;
        op.error_squares = phi * phi * floor * floor * op.twin_squares;
        op.loc_error_squares = introduced * introduced * floor * floor * op.loc_squares;
        return judge(m);
    };
    EXPECT_NE(find(off_by(5, 1), "MPT012"), nullptr);
    EXPECT_EQ(find(off_by(1, 1), "MPT012"), nullptr) << "the sums are the twin's";
    EXPECT_EQ(find(off_by(5, 0.3), "MPT012"), nullptr) << "most additions round nothing";
}

// The losses of a run, added up in bf16 to a total that is off by `drift`.
RunModel totalling(double drift, double addends) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    m.ops.push_back(op_sum("(data)", "aten::add", Phase::data, DType::bf16, 1, 30));
    OpRecord& op = m.ops.back().total;
    op.elements = op.calls = 13;
    op.compared = op.loc_compared = 0;
    op.total_of = addends;
    op.drift = drift;
    return m;
}

TEST(Judge, MPT012ATotalThatIsFarFromItsAddends) {
    const Judgement j = judge(totalling(0.18, 300));
    const Finding* const f = find(j, "MPT012");
    ASSERT_NE(f, nullptr) << text_of(j);
    EXPECT_EQ(f->severity, Severity::warning);
    EXPECT_EQ(f->source, "train.py:88");
    EXPECT_THAT(f->message,
                HasSubstr("a running total in bf16 of 300 addends is off by 18 % of what they add"));
    EXPECT_EQ(find(judge(totalling(0.01, 300)), "MPT012"), nullptr) << "6 floors";
    EXPECT_EQ(find(judge(totalling(0, 0)), "MPT012"), nullptr) << "no total";
}

OpSum positions(std::string op, std::uint64_t inexact, Phase phase = Phase::forward) {
    OpSum s = op_sum("rotary", std::move(op), phase, DType::bf16, 1, 3);
    s.total.elements = 384;
    s.total.inexact = inexact;
    return s;
}

// A cosine of what is off by 0.2 %.
OpSum wave(double error) {
    OpSum s = op_sum("rotary", "aten::cos", Phase::forward, DType::bf16, 0.8, 5);
    s.total.input_error = 0.002;
    s.total.prop_error_squares = error * error * s.total.loc_squares;
    return s;
}

TEST(Judge, MPT015PositionsThatBf16CannotCount) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("head", "aten::addmm", Phase::forward, DType::bf16, 1, 20));
    m.ops.push_back(positions("aten::arange", 64));
    m.ops.push_back(wave(0.14));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j) << "MPT013 would name the cosine";
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT015");
    EXPECT_EQ(f.severity, Severity::error);
    EXPECT_EQ(f.layer, "rotary");
    EXPECT_EQ(f.op, "aten::arange");
    EXPECT_THAT(f.message, HasSubstr("64 integers that become angles are not in bf16"));
    EXPECT_THAT(f.message, HasSubstr("cos is off by 14 % of its fp32 twin"));
    m.ops.back() = wave(0.09);
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::warning);
    m.ops.back().total.compared = m.ops.back().total.loc_compared = 0;
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::warning) << "no twin shows the harm";
}

TEST(Judge, MPT015IsSilentWhereIntegersMakeNoAngles) {
    RunModel m = healthy();
    m.ops.push_back(positions("aten::_to_copy", 64));
    EXPECT_EQ(text_of(judge(m)), "") << "distances that a slope multiplies";
    m.ops.push_back(wave(0.09));
    EXPECT_NE(find(judge(m), "MPT015"), nullptr);
    m.ops.back().total.first = 2;
    EXPECT_EQ(text_of(judge(m)), "") << "the cosine came before";
    m.ops.back() = wave(0.09);
    m.ops.back().total.layer = "other";
    EXPECT_EQ(text_of(judge(m)), "");
    m = healthy();
    m.ops.push_back(positions("aten::_to_copy", 64, Phase::data));
    m.ops.push_back(wave(0.09));
    m.ops.back().total.phase = Phase::data;
    for (std::size_t i = m.ops.size() - 2; i < m.ops.size(); ++i) m.ops[i].total.layer = "(data)";
    EXPECT_NE(find(judge(m), "MPT015"), nullptr);
    m.ops.back().total.source = "train.py:188";
    EXPECT_EQ(text_of(judge(m)), "") << "another function";
    m = healthy();
    m.ops.push_back(wave(0.09));
    m.ops.push_back(wave(0.09));
    m.ops[m.ops.size() - 2] = positions("aten::arange", 0);
    EXPECT_EQ(text_of(judge(m)), "") << "all integers are there";
}

// GradScaler divides at 60; clip_grad_norm_() comes at `clipped` and multiplies by `factor` at most.
RunModel clipping(std::uint64_t clipped, double factor) {
    RunModel m = healthy();
    for (StepSummary& s : m.steps) s.has_loss_scale = true, s.loss_scale = 1024;
    m.ops.push_back(op_sum("(scaler)", "aten::reciprocal", Phase::optimizer, DType::fp64, 0, 60));
    m.ops.push_back(op_sum("(clipping)", "aten::clamp", Phase::optimizer, DType::fp32, 0, clipped));
    m.ops.back().total.amax = factor;
    return m;
}

TEST(Judge, MPT062GradientsAreClippedWithTheirLossScale) {
    const Judgement j = judge(clipping(50, 0.004));
    const Finding* const f = find(j, "MPT062");
    ASSERT_NE(f, nullptr) << text_of(j);
    EXPECT_EQ(f->severity, Severity::error);
    EXPECT_EQ(f->layer, "(clipping)");
    EXPECT_THAT(f->message, HasSubstr("the loss scale (1,024)"));
    EXPECT_EQ(find(judge(clipping(70, 0.004)), "MPT062"), nullptr) << "unscale_() came before";
    EXPECT_EQ(find(judge(clipping(50, 0.8)), "MPT062"), nullptr) << "the limit contains the scale too";
    RunModel m = clipping(50, 0.004);
    for (StepSummary& s : m.steps) s.loss_scale = 1;
    EXPECT_EQ(find(judge(m), "MPT062"), nullptr);
    m = clipping(50, 0.004);
    m.others.push_back({1, {}});
    EXPECT_EQ(find(judge(m), "MPT062"), nullptr) << "the other network's gradients may have no scale";
}

}  // namespace
}  // namespace mp::trace
