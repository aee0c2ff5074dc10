// metrics.md 4.3: runs that look suspicious and are not. None may raise anything.

#include <gtest/gtest.h>

#include "kernels/numerics/float_format.hpp"
#include "runtime/judge/judge.hpp"
#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;

void expect_silent(const RunModel& m) { EXPECT_EQ(text_of(judge(m)), ""); }

TEST(Controls, GradScalersFirstSkips) {
    RunModel m = healthy();
    scaled(m, 60, {0, 1, 2, 3, 4, 5});
    OpSum s = op_sum("blocks.1.fc", "aten::mm", Phase::backward, DType::fp16, 1, 6);
    s.first_origin = {Rank{0}, Step{0}};
    s.at_origin = s.total;
    m.ops[2] = s;
    expect_silent(m);
}

TEST(Controls, DeepSpeedsFirstHalvings) {
    RunModel m = healthy();
    std::vector<std::int64_t> steps;
    for (std::int64_t k = 0; k < 18; ++k) steps.push_back(k);
    scaled(m, 400, steps, 4294967296.0);
    for (SkipFacts& s : m.skips) s.gradients[0].twin_amax = 2 * s.loss_scale;
    expect_silent(m);
}

TEST(Controls, MasksAreInfiniteInBoth) {
    RunModel m = healthy();
    OpSum s = op_sum("blocks.1.attn", "aten::masked_fill", Phase::forward, DType::bf16, 0, 4);
    s.total.neg_inf = 2000;
    m.ops.push_back(s);
    s = op_sum("blocks.1.attn", "aten::masked_fill", Phase::forward, DType::fp16, 0, 4);
    s.total.amax = 65504;  // finfo.min
    m.ops.push_back(s);
    s = op_sum("blocks.1.attn", "aten::add", Phase::forward, DType::fp16, 1, 5);
    s.total.amax = 65504;  // and the scores with it
    m.ops.push_back(s);
    expect_silent(m);
}

// scores[mask] = -6e4 and the like: the value was chosen.
TEST(Controls, MasksAreWrittenByManyOps) {
    for (const char* op : {"aten::masked_fill", "aten::where", "aten::clamp", "aten::nan_to_num",
                           "aten::scatter", "aten::index_put_", "aten::_index_put_impl_"}) {
        RunModel m = healthy();
        OpSum s = op_sum("blocks.1.attn", op, Phase::forward, DType::fp16, 0, 4);
        s.total.amax = 60000;
        m.ops.push_back(s);
        expect_silent(m);
    }
}

TEST(Controls, PaddedLanesHoldNaN) {
    RunModel m = healthy();
    m.ops[0].total.nan = 64;  // in both
    m.tensors[0].last.nonfinite_real = m.tensors[0].last.nonfinite_twin = 64;
    expect_silent(m);
}

TEST(Controls, ADropoutMaskHasOneMagnitude) {
    RunModel m = healthy();
    OpSum s = op_sum("blocks.1.drop", "aten::bmm", Phase::forward, DType::bf16, 2.2, 4);
    s.total.amin = s.total.amax = 1.109375;
    s.total.loc_dot = -0.9 * 0.00390625 * s.total.loc_squares;
    m.ops.push_back(s);
    expect_silent(m);
    m.ops.back().total.loc_error_squares *= 9;
    EXPECT_FALSE(judge(m).findings.empty()) << "more than one rounding can cost";
}

// logits / 1e-5 in bf16: the constant is rounded, and its error is in every result.
TEST(Controls, ARoundedConstant) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("head", "aten::div", Phase::forward, DType::bf16, 1.4, 4));
    m.ops.back().total.loc_dot = -0.34 * 0.00390625 * m.ops.back().total.loc_squares;
    expect_silent(m);
    m.ops.back().total.loc_dot *= 4;
    EXPECT_NE(find(judge(m), "MPT011"), nullptr) << "more than one rounding of the constant can err";
    m.ops.back().total.loc_dot /= 4;
    m.ops.back().total.op = "aten::scatter_";  // 0.9 of a smoothed label, written into each row
    expect_silent(m);
}

// Pictures of 8 bits, cast to bf16: 256 values, each of which is rounded in the same way everywhere.
TEST(Controls, RepeatedRoundingErrors) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("conv1", "aten::copy_", Phase::forward, DType::bf16, 0.9, 0));
    m.ops.back().total.loc_dot = 0.284 * 0.00390625 * m.ops.back().total.loc_squares;
    expect_silent(m);
    const RunModel sound = m;
    m.ops.back().total.loc_error_squares *= 2.4;
    EXPECT_NE(find(judge(m), "MPT011"), nullptr) << "truncation costs more than one floor";
    m = sound;
    m.ops.back().total.op = "aten::_softmax";  // of scores that are alike before anything is learned
    expect_silent(m);
    m.ops.back().total.loc_error_squares *= 2.4;
    EXPECT_NE(find(judge(m), "MPT011"), nullptr) << "a softmax that truncates";
    m = sound;
    m.ops.back().total.op = "aten::add_";
    m.ops.back().total.calls = m.step_count;
    expect_silent(m);  // one difference a step: a divergence whose rows are all alike at first
    m.ops.back().total.calls *= 400;
    EXPECT_NE(find(judge(m), "MPT011"), nullptr) << "a sum that loses small addends rounds to nearest, too";
}

TEST(Controls, TF32WhereItIsAllowed) {
    RunModel m = healthy();
    m.policies = {"tf32:matmul=on,cudnn=on"};
    OpSum s = op_sum("blocks.1.fc", "aten::addmm", Phase::forward, DType::fp32, 8000, 4);
    m.ops.push_back(s);
    expect_silent(m);
}

TEST(Controls, StochasticRoundingIsUnbiased) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("(optimizer)", "aten::copy_", Phase::optimizer, DType::bf16, 2, 9));
    m.ops.push_back(op_sum("blocks.1.fc", "aten::_to_copy", Phase::forward, DType::bf16, 2, 4));
    TensorSum t = tensor_sum(TensorKind::parameter, "blocks.0.fc.weight", DType::bf16);
    t.samples = 4;
    t.meant_to_move = 4 * kElements;
    t.unmoved = t.below_half_ulp = t.meant_to_move * 9 / 10;
    t.wanted_squares = 1;
    t.moved_dot = 0.98;
    t.first_stagnant = Step{0};
    m.tensors = {t};
    expect_silent(m);
    m.tensors[0].moved_dot = 0.1;
    EXPECT_NE(find(judge(m), "MPT040"), nullptr) << "the same without what arrives";
}

TEST(Controls, TinyTensors) {
    RunModel m = healthy();
    OpSum s = op_sum("blocks.1.scale", "aten::mm", Phase::forward, DType::bf16, 1.8, 4);
    s.total.loc_compared = s.total.compared = s.total.elements = 64;
    m.ops.push_back(s);
    s = op_sum("(loss)", "aten::mean", Phase::forward, DType::bf16, 2.3, 5);
    s.total.loc_compared = s.total.compared = s.total.elements = 8;
    m.ops.push_back(s);
    expect_silent(m);
}

TEST(Controls, AZeroReference) {
    RunModel m = healthy();
    OpSum s = op_sum("blocks.1.zero", "aten::mul", Phase::forward, DType::bf16, 0, 4);
    s.total.loc_squares = s.total.twin_squares = s.total.twin_abs = 0;
    s.total.loc_error_squares = 1e-30;
    s.total.amax = s.total.amin = 0;
    m.ops.push_back(s);
    expect_silent(m);
}

TEST(Controls, AWatchedRunHasNoTwin) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    m.coverage = {};
    for (OpSum& s : m.ops) {
        OpRecord& o = s.total;
        o.compared = o.loc_compared = 0;
        o.error_squares = o.twin_squares = o.loc_squares = o.loc_error_squares = o.prop_error_squares = 0;
        o.twin_amax = o.twin_abs = 0;
    }
    for (StepSummary& s : m.steps) s.has_twin = false;
    for (TensorSum& t : m.tensors) t.last.compared = 0;
    expect_silent(m);
}

TEST(Controls, AWarmUpStepMovesNothing) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    TensorSum t = tensor_sum(TensorKind::parameter, "blocks.0.fc.weight", DType::bf16);
    t.samples = t.frozen = 1;
    t.meant_to_move = t.unmoved = kElements;
    m.tensors = {t};
    expect_silent(m);
}

OpSum sum_of(std::uint64_t calls, double absorbed, double gain_u) {
    OpSum s = op_sum("blocks.1", "aten::add", Phase::forward, DType::bf16, 1, 5);
    s.total.calls = calls * 8;
    s.total.added = s.total.elements;
    s.total.absorbed = static_cast<std::uint64_t>(absorbed * static_cast<double>(s.total.added));
    s.total.loc_dot = gain_u * 0.00390625 * s.total.loc_squares;
    return s;
}

TEST(Controls, AHarmlessSum) {
    RunModel m = healthy();
    m.ops.push_back(sum_of(4, 0.4, -0.2));     // few addends
    m.ops.push_back(sum_of(48, 0.3, 0.01));    // a residual stream: what is swallowed cancels
    m.ops.push_back(sum_of(512, 0.05, -0.2));  // little is swallowed
    expect_silent(m);
}

TEST(Controls, ZerosOfAReluThatDrifted) {
    RunModel m = healthy();
    OpSum s = op_sum("blocks.1.act", "aten::relu", Phase::forward, DType::fp16, 1, 4);
    s.total.flushed_abs = 0.2 * s.total.twin_abs;
    m.ops.push_back(s);
    expect_silent(m);
}

TEST(Controls, SubnormalGradientsAreNotAnOpsFault) {
    RunModel m = healthy();
    OpSum s = op_sum("blocks.1.fc", "aten::mm", Phase::backward, DType::fp16, 40, 6);
    s.total.amax = 2e-4;
    s.total.loc_squares = 1e-10 * static_cast<double>(kElements);
    s.total.loc_error_squares = 1e-13 * static_cast<double>(kElements);
    m.ops[2] = s;
    expect_silent(m);
}

TEST(Controls, OpsThatRoundOnTheWay) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("blocks.1", "aten::_softmax", Phase::forward, DType::bf16, 2.0, 4));
    m.ops.push_back(op_sum("blocks.1", "aten::native_layer_norm", Phase::forward, DType::bf16, 2.0, 5));
    m.ops.push_back(op_sum("blocks.1", "aten::gelu_backward", Phase::backward, DType::bf16, 2.4, 7));
    m.ops.push_back(op_sum("blocks.1", "aten::_scaled_dot_product_flash_attention_for_cpu", Phase::forward,
                           DType::bf16, 2.8, 6));
    expect_silent(m);
}

TEST(Controls, GradientNoiseIsInherited) {
    RunModel m = healthy();
    m.ops[2].total.error_squares = 0.05 * m.ops[2].total.twin_squares;  // 22 %
    m.ops[2].total.prop_error_squares = m.ops[2].total.error_squares;
    expect_silent(m);
}

TEST(Controls, FrozenParametersAreNotMeantToMove) {
    RunModel m = healthy();
    m.tensors = {tensor_sum(TensorKind::parameter, "frozen.weight", DType::bf16)};
    expect_silent(m);
}

}  // namespace
}  // namespace mp::trace
