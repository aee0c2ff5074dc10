// Each rule: a run that has the defect, and its twin that has not.

#include "runtime/shadow/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/numerics/float_format.hpp"
#include "runtime/shadow/rule_pack.hpp"
#include "tests/runtime/shadow/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;

OpSum overflowing(std::string layer, Phase phase, std::int64_t step, std::uint64_t first) {
    OpSum s =
        op_sum(std::move(layer), phase == Phase::backward ? "aten::mm" : "aten::addmm", phase, DType::fp16, 1, first);
    s.first_origin = {Rank{1}, Step{step}};
    s.at_origin = s.total;
    s.at_origin.pos_inf = s.at_origin.nonfinite_real = 3;
    s.at_origin.elements = 4096;
    s.at_origin.input_amax = 301;
    s.at_origin.twin_amax = 71'304;
    s.at_origin.first_origin = first;
    return s;
}

TEST(Judge, AHealthyRunHasNoFinding) {
    const Judgement j = judge(healthy());
    EXPECT_EQ(text_of(j), "");
    EXPECT_FALSE(j.first_overflow.found);
    EXPECT_EQ(j.ladder.size(), 3u);
    EXPECT_EQ(j.samples_lost, 0);
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
    EXPECT_THAT(f.advice, HasSubstr("run blocks.2.fc2 in fp32 or bf16; lowering the loss scale does not help: the "
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
    for (SkipFacts& s : m.skips) s.origin = op.at_origin, s.origin.layer = "blocks.2.mlp.up", s.origin_rank = Rank{1};
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

TEST(Judge, MPT010IntroducedError) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("blocks.1.norm", "aten::var", Phase::forward, DType::bf16, 8, 5));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT010");
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_EQ(j.findings[0].layer, "blocks.1.norm");
    EXPECT_EQ(j.findings[0].step, Step{3});
    EXPECT_NEAR(j.findings[0].value, 8, 1e-6);
    EXPECT_GT(j.findings[0].importance, 0.8) << "most of what all ops introduced";
    EXPECT_THAT(j.findings[0].message, HasSubstr("introduces 8.0 φ, its roundings cost 1.4 φ"));
}

TEST(Judge, MPT010NamesTheFirstStepAboveTheLimit) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("blocks.1.norm", "aten::var", Phase::forward, DType::bf16, 8, 5));
    m.map = {{.layer = "blocks.1.norm", .phase = Phase::forward, .order = 5, .cells = {}}};
    for (const float phi : {1.F, -1.F, 7.F, 9.F}) m.map[0].cells.push_back({.cum_phi = 1, .loc_phi = phi});
    EXPECT_EQ(judge(m).findings.at(0).step, Step{2});
    m.column_steps = 2;
    EXPECT_EQ(judge(m).findings.at(0).step, Step{3}) << "columns of several steps: the worst";
}

TEST(Judge, MPT010WarnsBelowTheFailure) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("blocks.1.fc", "aten::bmm", Phase::forward, DType::bf16, 1.7, 5));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u);
    EXPECT_EQ(j.findings[0].severity, Severity::warning);
    m.ops.back() = op_sum("blocks.1.fc", "aten::bmm", Phase::forward, DType::bf16, 1.4, 5);
    EXPECT_EQ(text_of(judge(m)), "");
}

TEST(Judge, MPT010OneOpInSeveralLayersIsOneFinding) {
    RunModel m = healthy();
    const std::string op = "aten::native_layer_norm_backward";
    for (int i = 0; i < 6; ++i)
        m.ops.push_back(op_sum("blocks." + std::to_string(i) + ".norm", op, Phase::backward, DType::bf16,
                               i == 2 ? 12 : 8, 10 + static_cast<std::uint64_t>(i)));
    m.ops.push_back(op_sum("blocks.0.norm", op, Phase::backward, DType::fp16, 9, 20));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 2u) << "two dtypes:\n" << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.layer, "blocks.2.norm") << "the worst";
    EXPECT_EQ(f.more_layers.size(), 5u);
    EXPECT_THAT(f.message,
                HasSubstr("; and 5 more layers: blocks.0.norm, blocks.1.norm, blocks.3.norm, ...; "));
    EXPECT_THAT(f.advice, HasSubstr("keep the module that runs layer_norm in fp32"));
    EXPECT_GT(f.importance, 0.5) << "of all layers";
}

// 8 occurrences of one token carry nearly all of the energy of 16,384 results.
OpSum repeated_value(double phi, double gain_u) {
    OpSum s = op_sum("layers.1.wi", "aten::mm", Phase::forward, DType::fp16, phi, 5);
    s.total.loc_squares = s.total.twin_squares = 8.0 * 548 * 548;
    s.total.amax = 548;
    const double floor = one_rounding_floor(DType::fp16);
    s.total.loc_error_squares = phi * phi * floor * floor * s.total.loc_squares;
    s.total.loc_dot = gain_u * 0.00048828125 * s.total.loc_squares;
    return s;
}

TEST(Judge, ARepeatedValuesRoundingIsNoBias) {
    RunModel m = healthy();
    m.ops.push_back(repeated_value(1.6, -0.58));
    EXPECT_EQ(text_of(judge(m)), "");
    m.ops.back() = repeated_value(4, -1.6);
    EXPECT_NE(find(judge(m), "MPT010"), nullptr) << "more than one rounding can cost";
    m.ops.back() = repeated_value(2, -1.2);
    EXPECT_NE(find(judge(m), "MPT011"), nullptr) << "more than one rounding to nearest can err";
    OpSum spread = op_sum("layers.1.wi", "aten::mm", Phase::forward, DType::fp16, 1.3, 5);
    spread.total.loc_dot = -0.5 * 0.00048828125 * spread.total.loc_squares;
    m.ops.back() = spread;
    EXPECT_NE(find(judge(m), "MPT011"), nullptr) << "over many values";
}

TEST(Judge, MPT011Truncation) {
    RunModel m = healthy();
    OpSum s = op_sum("blocks.1.act", "aten::sub", Phase::forward, DType::bf16, 1.3, 5);
    s.total.loc_dot = -2.8e-3 * s.total.loc_squares;  // metrics.md 3.2: bf16 by truncation
    m.ops.push_back(s);
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT011");
    EXPECT_THAT(j.findings[0].message, HasSubstr("smaller"));
    m.ops.back().total.loc_dot = 1e-5 * s.total.loc_squares;  // to nearest
    EXPECT_EQ(text_of(judge(m)), "");
}

// 512 additions a step, as the loss of peers-measured.md A.3 does them.
OpSum running_sum() {
    OpSum s = op_sum("lossf", "aten::add", Phase::forward, DType::bf16, 1.1, 9);
    OpRecord& o = s.total;
    o.calls = o.elements = o.compared = o.loc_compared = 512 * 8;
    o.added = o.calls;
    o.absorbed = o.added * 46 / 100;
    o.amax = 1024;
    o.twin_amax = 1890;
    o.loc_dot = -0.4 * 0.00390625 * o.loc_squares;
    o.error_squares = 0.09 * o.twin_squares;
    return s;
}

TEST(Judge, MPT012ARunningSumThatSwallows) {
    RunModel m = healthy();
    m.ops.push_back(running_sum());
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT012");
    EXPECT_EQ(f.layer, "lossf");
    EXPECT_EQ(f.op, "aten::add");
    EXPECT_EQ(f.phase, Phase::forward);
    EXPECT_EQ(f.step, Step{0});
    EXPECT_THAT(f.message, HasSubstr("46 %"));
    EXPECT_THAT(f.advice, HasSubstr("fp32"));
}

TEST(Judge, MPT012ASumThatStandsIsSeenWithoutCounts) {
    RunModel m = healthy();
    m.ops.push_back(running_sum());
    m.ops.back().total.added = m.ops.back().total.absorbed = 0;
    m.ops.back().total.loc_compared = 0;
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT012"), nullptr) << text_of(j);
    EXPECT_THAT(find(j, "MPT012")->message, HasSubstr("stands at 1,024 where the fp32 twin reaches 1,890"));
}

// The angles of a rotary embedding: positions above 256 in bf16.
OpSum amplified(std::string op, double input_error, double inherited, std::uint64_t first) {
    OpSum s = op_sum("attention", std::move(op), Phase::forward, DType::bf16, 0.8, first);
    s.total.input_error = input_error;
    s.total.prop_error_squares = inherited * inherited * s.total.loc_squares;
    s.worst_cum = {Rank{0}, Step{2}};
    return s;
}

TEST(Judge, MPT013AmplifiedError) {
    RunModel m = healthy();
    m.ops.push_back(amplified("aten::cos", 0.002, 0.23, 5));
    m.ops.push_back(amplified("aten::sin", 0.002, 0.28, 6));
    m.ops.push_back(amplified("aten::mul", 0.3, 0.3, 7));  // hands on what it got
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT013");
    EXPECT_EQ(f.severity, Severity::error);
    EXPECT_EQ(f.op, "aten::sin");
    EXPECT_EQ(f.phase, Phase::forward);
    EXPECT_EQ(f.step, Step{2});
    EXPECT_THAT(f.message, HasSubstr("sin of attention turns an input error of 0.2 % into 28 % (limit 20 %)"));
    EXPECT_THAT(f.message, HasSubstr("so does cos"));
    EXPECT_THAT(f.advice, HasSubstr("fp32"));
}

TEST(Judge, MPT013IsSilentWithoutAmplification) {
    RunModel m = healthy();
    m.ops.push_back(amplified("aten::cos", 0.002, 0.12, 5));
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::warning);
    m.ops.back() = amplified("aten::cos", 0.002, 0.09, 5);
    EXPECT_EQ(text_of(judge(m)), "") << "a small result";
    m.ops.back() = amplified("aten::cos", 0.006, 0.5, 5);
    EXPECT_EQ(text_of(judge(m)), "") << "inputs of 3.6 floors";
    m.ops.back() = amplified("aten::cos", 0.002, 0.5, 5);
    m.ops.back().total.loc_compared = 63;
    EXPECT_EQ(text_of(judge(m)), "") << "too few elements";
    m.ops.back() = amplified("aten::cos", 0.002, 0.5, 5);
    m.ops.back().total.phase = Phase::backward;
    EXPECT_EQ(text_of(judge(m)), "") << "gradients cancel on their own";
    m.ops.back() = amplified("aten::cos", 0, 0.5, 5);
    EXPECT_EQ(text_of(judge(m)), "") << "inputs were not compared";
}

TEST(Judge, MPT030GradientsFlushedToZero) {
    RunModel m = healthy();
    OpSum s = op_sum("blocks.1.fc", "aten::mm", Phase::backward, DType::fp16, 1, 6);
    s.total.twin_abs = 0.02;
    s.total.flushed_abs = 0.04 * s.total.twin_abs;
    s.total.subnormals = s.total.zeros = s.total.elements / 4;
    m.ops[2] = s;
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT030"), nullptr) << text_of(j);
    EXPECT_EQ(find(j, "MPT030")->phase, Phase::backward);
    EXPECT_THAT(find(j, "MPT030")->message, HasSubstr("4 %"));
    m.ops[2].total.flushed_abs = 0.005 * s.total.twin_abs;
    EXPECT_EQ(find(judge(m), "MPT030"), nullptr);
    m.ops[2].total.twin_abs = 9;
    m.ops[2].total.flushed_abs = 3;
    EXPECT_EQ(find(judge(m), "MPT030"), nullptr) << "the twin's values there fit: the run has drifted";
}

TEST(Judge, MPT030AParametersGradient) {
    RunModel m = healthy();
    TensorRecord& r = m.tensors[1].last;
    r.dtype = DType::fp16;
    r.twin_abs = 2e-3;
    r.flushed_abs = 0.5 * r.twin_abs;
    r.zeros = r.elements / 2;
    r.subnormals = r.elements / 8;
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT030"), nullptr);
    EXPECT_EQ(find(j, "MPT030")->layer, "blocks.0.fc");
}

TEST(Judge, MPT031NearTheLargest) {
    RunModel m = healthy();
    m.ops[1].total.dtype = DType::fp16;
    m.ops[1] = op_sum("blocks.1.fc", "aten::addmm", Phase::forward, DType::fp16, 1, 3);
    m.ops[1].total.amax = 40'000;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT031");
    EXPECT_EQ(j.findings[0].severity, Severity::warning);
    m.ops[1].total.amax = 16'000;
    EXPECT_EQ(text_of(judge(m)), "");
}

TensorSum stuck(std::string name, double share, double arrives) {
    TensorSum t = tensor_sum(TensorKind::parameter, std::move(name), DType::bf16);
    t.samples = 4;
    t.meant_to_move = 4 * kElements;
    t.unmoved = t.below_half_ulp = static_cast<std::uint64_t>(share * static_cast<double>(t.meant_to_move));
    t.wanted_squares = 1e-4;
    t.moved_dot = arrives * t.wanted_squares;
    t.first_stagnant = Step{0};
    return t;
}

TEST(Judge, MPT040StagnatingWeights) {
    RunModel m = healthy();
    m.tensors = {stuck("head.weight", 0.4, 0.6), stuck("blocks.1.fc.weight", 0.94, 0.06),
                 stuck("tok.weight", 0.2, 0.9)};
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT040");
    EXPECT_EQ(f.severity, Severity::error);
    EXPECT_EQ(f.layer, "blocks.1.fc");
    EXPECT_EQ(f.phase, Phase::optimizer);
    EXPECT_EQ(f.step, Step{0});
    EXPECT_THAT(f.message, HasSubstr("94 %"));
    EXPECT_THAT(f.message, HasSubstr("below half an ulp"));
    EXPECT_THAT(f.message, HasSubstr("1 other parameter as well"));
    m.tensors = {stuck("head.weight", 0.4, 0.6)};
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::warning);
    m.tensors = {stuck("head.weight", 0.2, 0.6)};
    EXPECT_EQ(text_of(judge(m)), "");
}

TEST(Judge, MPT040NamesTheUpdatingOp) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("(optimizer)", "aten::add_", Phase::optimizer, DType::bf16, 1, 8));
    m.ops.push_back(op_sum("(optimizer)", "aten::addcdiv_", Phase::optimizer, DType::bf16, 1, 9));
    m.tensors = {stuck("head.weight", 0.9, 0.1)};
    EXPECT_EQ(judge(m).findings.at(0).op, "aten::addcdiv_");
}

// Weight decay below half an ulp: the few rows with a gradient take nearly all of the wanted update.
RunModel decayed() {
    RunModel m = healthy();
    m.tensors = {stuck("embedding.weight", 0.92, 1.01)};
    m.ops.push_back(op_sum("(optimizer)", "aten::add", Phase::optimizer, DType::bf16, 1, 8));
    m.ops.push_back(op_sum("(optimizer)", "aten::add_", Phase::optimizer, DType::bf16, 0.9, 9));
    return m;
}

TEST(Judge, MPT040FewElementsTakeTheWholeUpdate) {
    RunModel m = decayed();
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT040");
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_EQ(j.findings[0].layer, "embedding");
    EXPECT_EQ(j.findings[0].op, "aten::add_");
    EXPECT_THAT(j.findings[0].message, HasSubstr("92 %"));
    EXPECT_THAT(j.findings[0].message, HasSubstr("the few others take nearly all of the wanted update"));
}

TEST(Judge, MPT040WhatArrivesInJumpsIsNotLost) {
    RunModel m = decayed();
    m.ops.push_back(op_sum("(optimizer)", "aten::copy_", Phase::optimizer, DType::bf16, 1, 10));
    EXPECT_EQ(text_of(judge(m)), "") << "a copy of fp32 masters";
    m = decayed();
    m.ops.back() = op_sum("(optimizer)", "aten::add_", Phase::optimizer, DType::bf16, 1.9, 9);
    EXPECT_EQ(text_of(judge(m)), "") << "hardware that rounds stochastically";
    m = decayed();
    m.ops.pop_back();
    EXPECT_EQ(text_of(judge(m)), "") << "how the weights are written was not seen";
    m = decayed();
    m.tensors[0].samples = 1;
    EXPECT_EQ(text_of(judge(m)), "") << "one sample";
    m = decayed();
    m.tensors[0].below_half_ulp = m.tensors[0].unmoved / 2;
    EXPECT_EQ(text_of(judge(m)), "") << "rounding does not explain it";
    m = decayed();
    m.tensors = {stuck("embedding.weight", 0.6, 1.01)};
    EXPECT_EQ(text_of(judge(m)), "") << "most move";
}

TEST(Judge, MPT040AnAverageOfWeights) {
    RunModel m = healthy();
    m.tensors = {tensor_sum(TensorKind::gradient, "student.0.weight", DType::fp32),
                 stuck("teacher.0.weight", 0.98, 0.02)};
    m.tensors[1].first_stagnant = Step{1};
    m.ops.push_back(op_sum("(update)", "aten::mul_", Phase::optimizer, DType::bf16, 1, 9));
    m.ops.push_back(op_sum("(update)", "aten::lerp_", Phase::optimizer, DType::bf16, 1, 10));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].layer, "teacher.0");
    EXPECT_EQ(j.findings[0].op, "aten::lerp_");
    EXPECT_EQ(j.findings[0].phase, Phase::optimizer);
    EXPECT_EQ(j.findings[0].step, Step{1});
    EXPECT_THAT(j.findings[0].message, HasSubstr("parameter without a gradient teacher.0.weight"));
    EXPECT_THAT(j.findings[0].advice, HasSubstr("average"));
    m.tensors[1] = stuck("teacher.0.weight", 0.1, 0.95);
    EXPECT_EQ(text_of(judge(m)), "");
}

TEST(Judge, MPT040FrozenState) {
    RunModel m = healthy();
    TensorSum t = stuck("blocks.1.fc.weight.exp_avg_sq", 1, 0);
    t.kind = TensorKind::optimizer_state;
    m.tensors = {t};
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u);
    EXPECT_THAT(j.findings[0].message, HasSubstr("optimizer state"));
    m.tensors = {stuck("blocks.1.fc.weight", 0.94, 0.06), t};
    EXPECT_THAT(judge(m).findings.at(0).message, HasSubstr("parameter")) << "the weights come first";
}

TEST(Judge, MPT050ReductionError) {
    RunModel m = healthy();
    CollectiveTotal c;
    c.total = {.op = "reduce_scatter", .reduction = "avg", .dtype = DType::bf16, .group = "0", .calls = 24,
               .bytes = 1, .compared = kElements, .error_squares = 0, .sum_squares = 1, .made_nonfinite = 0};
    c.total.error_squares = std::pow(12 * one_rounding_floor(DType::bf16), 2);
    c.worst_at = {Rank{1}, Step{2}};
    m.collectives = {c};
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT050");
    EXPECT_EQ(j.findings[0].op, "reduce_scatter");
    EXPECT_THAT(j.findings[0].message, HasSubstr("12.0 φ"));
    m.collectives[0].total.error_squares /= 36;
    EXPECT_EQ(text_of(judge(m)), "");
    m.collectives[0].total.made_nonfinite = 5;
    m.collectives[0].first_nonfinite = Step{3};
    EXPECT_THAT(judge(m).findings.at(0).message, HasSubstr("made 5 non-finite values"));
}

TEST(Judge, MPT051ReplicasOnlyUnderDDP) {
    RunModel m = healthy();
    m.tensors[0].hash_mismatches = 3;
    m.tensors[0].first_mismatch = {Rank{1}, Step{4}};
    EXPECT_EQ(text_of(judge(m)), "") << "shards differ by design";
    m.policies = {"ddp"};
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT051");
    EXPECT_EQ(j.findings[0].step, Step{4});
    m.policies = {"ddp", "fsdp:param=bf16"};
    EXPECT_EQ(find(judge(m), "MPT051"), nullptr);
}

TEST(Judge, MPT051ReplicasWhoseTwinsAgree) {
    RunModel m = healthy();
    m.tensors[0].hash_mismatches = 8;
    m.tensors[0].replicas = 8;
    m.tensors[0].replica_mismatches = 7;
    m.tensors[0].first_replica_mismatch = {Rank{1}, Step{1}};
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT051");
    EXPECT_EQ(j.findings[0].layer, "blocks.0.fc");
    EXPECT_EQ(j.findings[0].phase, Phase::optimizer);
    EXPECT_EQ(j.findings[0].step, Step{1});
    EXPECT_THAT(j.findings[0].message, HasSubstr("on 7 sampled steps where their fp32 twins hold the same values"));
    m.tensors[0].replica_mismatches = 0;
    EXPECT_EQ(text_of(judge(m)), "") << "shards, whose twins differ";
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

TEST(Judge, RulesWithoutMeasuresAreNotRun) {
    RunModel m = healthy();
    auto why = [](const Judgement& j, std::string_view id) {
        for (const auto& n : j.not_run) {
            if (n.rule == id) return n.why;
        }
        return std::string();
    };
    EXPECT_THAT(why(judge(m), "MPT020"), HasSubstr("baseline"));
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
    for (const std::string& text : {f.message, f.advice}) EXPECT_EQ(text.find_first_of("\x1b\n\r"), std::string::npos);
}

TEST(RulePack, IdsAreSortedAndFound) {
    for (std::size_t i = 1; i < rule_pack().size(); ++i) EXPECT_LT(rule_pack()[i - 1].id, rule_pack()[i].id);
    EXPECT_EQ(rule_called("MPT012")->name, "swallowed-addends");
    EXPECT_EQ(rule_called("MPT999"), nullptr);
}

}  // namespace
}  // namespace mp::trace
