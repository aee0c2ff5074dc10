// Weights that stand still, reductions and replicas: a run that has the defect, and its twin that has not.

#include "runtime/judge/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

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
    EXPECT_THAT(f.message, HasSubstr("weights are updated in bf16 without an fp32 master: "
                                     "updates of 2 of 3 parameters are lost; in blocks.1.fc.weight"));
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
    const Judgement both = judge(m);
    ASSERT_EQ(both.findings.size(), 1u) << text_of(both);
    EXPECT_THAT(both.findings[0].message, HasSubstr("in blocks.1.fc.weight"));
    EXPECT_THAT(both.findings[0].message, HasSubstr("1 optimizer state as well"));
}

TEST(Judge, MPT040AMasterIsJudgedInsteadOfItsCopy) {
    RunModel m = healthy();
    m.tensors = {stuck("head.weight", 0.95, 1)};
    m.tensors[0].mastered = kElements;
    EXPECT_EQ(text_of(judge(m)), "");
    // The copy is made from the 16-bit weights: what each step adds to it is gone in the next.
    m.tensors[0].moved_dot = 0.2 * m.tensors[0].wanted_squares;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_THAT(j.findings[0].message, HasSubstr("made from the bf16 weights in every step"));
    EXPECT_THAT(j.findings[0].message, HasSubstr("20 % of the wanted update arrives"));
    // One of several follows noise; a program makes all of them anew, or none.
    for (const char* name : {"a.weight", "b.weight"}) {
        m.tensors.push_back(stuck(name, 0.95, 1));
        m.tensors.back().mastered = kElements;
    }
    EXPECT_EQ(text_of(judge(m)), "");
}

TEST(Judge, MPT040WithoutATwin) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    m.tensors = {stuck("head.weight", 0.95, 0)};
    m.tensors[0].wanted_squares = m.tensors[0].moved_dot = 0;
    EXPECT_EQ(text_of(judge(m)), "") << "it may be rounded stochastically";
    m.ops.push_back(op_sum("(optimizer)", "aten::add_", Phase::optimizer, DType::bf16, 1, 9));
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::warning) << "added in 16 bits";
    m.ops.pop_back();
    m.tensors[0].unmoved = m.tensors[0].meant_to_move;
    m.tensors[0].frozen = m.tensors[0].samples;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << "nothing moved at all";
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_THAT(j.findings[0].message, HasSubstr("1 parameter never moved"));
    EXPECT_THAT(j.findings[0].message, Not(HasSubstr("arrives")))
        << "how far it should have moved is not known";
}

// A temperature that the model learns, in fp16: one element that no update moves.
RunModel of_a_temperature() {
    RunModel m = healthy();
    TensorSum t = stuck("logit_scale", 1, 0);
    t.last.elements = 1;
    t.samples = t.frozen = t.meant_to_move = t.unmoved = t.below_half_ulp = 3;
    TensorSum gradient = tensor_sum(TensorKind::gradient, "logit_scale", t.last.dtype);
    gradient.last.amax = 2.7;
    m.tensors = {t, gradient};
    m.ops.push_back(op_sum("(optimizer)", "aten::addcdiv_", Phase::optimizer, t.last.dtype, 1, 9));
    return m;
}

TEST(Judge, MPT040AParameterOfOneElement) {
    RunModel m = of_a_temperature();
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_EQ(j.findings[0].layer, "logit_scale");
    EXPECT_THAT(j.findings[0].message, HasSubstr("1 parameter never moved"));
    m.tensors[0].wanted_squares = m.tensors[0].moved_dot = 0, m.tensors[0].below_half_ulp = 0;
    m.mode = Mode::watch;
    EXPECT_NE(find(judge(m), "MPT040"), nullptr) << "without a twin too";
}

TEST(Judge, MPT040AParameterOfOneElementMayStay) {
    const auto silent = [](const char* why, auto change) {
        RunModel m = of_a_temperature();
        change(m);
        EXPECT_EQ(text_of(judge(m)), "") << why;
    };
    silent("two samples", [](RunModel& m) { m.tensors[0].samples = m.tensors[0].frozen = 2; });
    silent("it moved once", [](RunModel& m) { m.tensors[0].frozen = m.tensors[0].unmoved = 2; });
    silent("one update was larger", [](RunModel& m) { m.tensors[0].below_half_ulp = 2; });
    silent("no gradient", [](RunModel& m) { m.tensors[1].last.amax = 0; });
    silent("rounded by a copy", [](RunModel& m) {
        m.ops.push_back(m.ops.back());
        m.ops.back().total.op = "aten::copy_";
    });
    silent("updates are added in fp32", [](RunModel& m) { m.ops.back().total.dtype = DType::fp32; });
    silent("it has a master", [](RunModel& m) {
        m.tensors[0].mastered = 3;
        m.tensors[0].moved_dot = m.tensors[0].wanted_squares;
    });
}

TEST(Judge, MPT040LostWeightDecay) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("(optimizer)", "aten::mul_", Phase::optimizer, DType::bf16, 0.9, 9));
    m.ops.back().total.added = m.ops.back().total.absorbed = kElements;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_THAT(j.findings[0].message, HasSubstr("weight decay leaves 100 % of the weights as they are"));
    m.tensors = {stuck("head.weight", 0.95, 0.1)};
    const Judgement both = judge(m);
    ASSERT_EQ(both.findings.size(), 1u) << "one cause, one finding";
    EXPECT_THAT(both.findings[0].message, HasSubstr("weight decay leaves 100 % of the weights as they are"));
    m.tensors.clear();
    m.ops.back().total.absorbed = kElements / 2;
    EXPECT_EQ(text_of(judge(m)), "");
}

// An EMA of clones is no parameter of a model. Only the op that updates it is known.
// A teacher's parameters are multiplied too, and it is not weight decay that they lose.
TEST(Judge, MPT040AnAverageThatIsMultipliedIsNotDecay) {
    RunModel m = healthy();
    m.tensors.push_back(stuck("teacher.fc.weight", 0.8, 0));
    m.ops.push_back(op_sum("(update)", "aten::mul_", Phase::optimizer, DType::bf16, 0.9, 9));
    m.ops.back().total.added = m.ops.back().total.absorbed = kElements;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].layer, "teacher.fc");
    EXPECT_THAT(j.findings[0].message, HasSubstr("parameter without a gradient teacher.fc.weight"));
    m.tensors.pop_back();
    EXPECT_THAT(judge(m).findings.at(0).message, HasSubstr("weight decay leaves 100 % of the weights"));
}

TEST(Judge, MPT040AnAverageWithoutAName) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("(update)", "aten::add_", Phase::optimizer, DType::bf16, 0.9, 9));
    m.ops.back().total.added = m.ops.back().total.absorbed = kElements;
    m.ops.back().total.loc_dot = 0.3 * 0.00390625 * m.ops.back().total.loc_squares;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << "and no bias of its rounding: " << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT040");
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_THAT(j.findings[0].message, HasSubstr("an average outside of the optimizer is updated in bf16"));
    const RunModel bad = m;
    m.tensors = {stuck("head.weight", 0.95, 0.1)};
    EXPECT_EQ(judge(m).findings.size(), 1u) << "the weights are the first cause";
    m = bad;
    m.ops.back().total.absorbed = kElements / 2;
    m.ops.back().total.loc_dot = 0;
    EXPECT_EQ(text_of(judge(m)), "");
    m = bad;
    m.ops.back().total.added = m.ops.back().total.absorbed = 512;
    m.ops.back().total.loc_dot = 0;
    EXPECT_EQ(text_of(judge(m)), "");
}

TEST(Judge, MPT040AnAverageWithoutANameAndWithoutATwin) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    m.ops.push_back(op_sum("(update)", "aten::lerp_", Phase::optimizer, DType::bf16, 0.9, 9));
    OpRecord& op = m.ops.back().total;
    op.compared = op.loc_compared = 0;
    op.updated = op.stood = 4096;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT040");
    EXPECT_EQ(j.findings[0].severity, Severity::warning);
    EXPECT_THAT(j.findings[0].message,
                HasSubstr("leaves 100 % of the elements as they are that an exact sum"));
    op.stood = 3000;
    EXPECT_EQ(text_of(judge(m)), "");
    op.updated = op.stood = 512;
    EXPECT_EQ(text_of(judge(m)), "");
}

TEST(Judge, MPT043NothingRanBelowFp32) {
    RunModel m = healthy();
    m.policies = {"autocast:cpu=bf16"};
    m.ops_by_dtype = {{DType::fp32, 100}};
    const Judgement j = judge(m);
    const Finding* f = find(j, "MPT043");
    ASSERT_NE(f, nullptr) << text_of(j);
    EXPECT_EQ(f->severity, Severity::warning);
    EXPECT_THAT(f->message, HasSubstr("autocast:cpu=bf16"));
    m.ops_by_dtype[DType::bf16] = 1;
    EXPECT_EQ(find(judge(m), "MPT043"), nullptr);
    m.ops_by_dtype = {{DType::fp32, 100}};
    m.notes.push_back({.kind = NoteKind::not_observed,
                       .text = "torch.compile(f)",
                       .count = 1,
                       .processes = 1,
                       .first = {}});
    EXPECT_EQ(find(judge(m), "MPT043"), nullptr) << "a region was not seen";
    m.notes.clear();
    m.policies = {"autocast:cpu=fp32"};
    EXPECT_EQ(find(judge(m), "MPT043"), nullptr);
}

// trunc_normal_ draws -inf and clamps it.
TEST(Judge, MPT001SparesWhatAnInitialisationDraws) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    OpSum s = op_sum("(update)", "aten::log_", Phase::optimizer, DType::fp32, 1, 0);
    s.first_origin = {Rank{0}, Step{0}};
    s.total.neg_inf = 1;
    s.at_origin = s.total;
    s.at_origin.nonfinite_real = 0;
    m.ops.push_back(s);
    EXPECT_EQ(text_of(judge(m)), "");
    m.steps[0].loss = INFINITY;
    EXPECT_NE(find(judge(m), "MPT001"), nullptr) << "it was still there";
    m.steps[0].loss = 3.9;
    m.ops.back().first_origin.step = Step{4};
    EXPECT_NE(find(judge(m), "MPT001"), nullptr) << "after training began";
    m.ops.back().first_origin.step = Step{0};
    m.ops.back().total.phase = Phase::forward;
    m.ops.back().total.layer = "fc";
    EXPECT_NE(find(judge(m), "MPT001"), nullptr) << "in the model";
}

TEST(Judge, MPT010OmitsWholeLayers) {
    RunModel m = healthy();
    m.ops.push_back(
        op_sum("encoder.0", "aten::_transformer_encoder_layer_fwd", Phase::forward, DType::bf16, 12, 9));
    EXPECT_EQ(text_of(judge(m)), "");
    m.ops.back().total.op = "aten::var";
    EXPECT_NE(find(judge(m), "MPT010"), nullptr);
}

TEST(Judge, MPT050ReductionError) {
    RunModel m = healthy();
    CollectiveTotal c;
    c.total = {.op = "reduce_scatter",
               .reduction = "avg",
               .dtype = DType::bf16,
               .group = "0",
               .calls = 24,
               .bytes = 1,
               .compared = kElements,
               .error_squares = 0,
               .sum_squares = 1,
               .made_nonfinite = 0,
               .memory = {},
               .algorithms = {}};
    c.total.error_squares = std::pow(12 * one_rounding_floor(DType::bf16), 2);
    c.worst_at = {Rank{1}, Step{2}};
    m.collectives = {c};
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT050");
    EXPECT_EQ(j.findings[0].op, "reduce_scatter");
    EXPECT_THAT(j.findings[0].message, HasSubstr("12.0 φ"));
    EXPECT_THAT(j.findings[0].message, Not(HasSubstr("elements")));
    m.collectives[0].sketched = 40;
    m.collectives[0].worst_block = {4096, 1024, 65536, Step{2}, 0.37};
    EXPECT_THAT(judge(m).findings.at(0).message,
                HasSubstr("; 37 % of the squared error is in elements 4096 to 5119 of 65536 in step 2"));
    m.collectives[0].total.error_squares /= 36;
    EXPECT_EQ(text_of(judge(m)), "");
    m.collectives[0].total.made_nonfinite = 5;
    m.collectives[0].first_nonfinite = Step{3};
    EXPECT_THAT(judge(m).findings.at(0).message, HasSubstr("made 5 non-finite values"));
    for (const char* const name :
         {"blocks.1.fc.bias", "blocks.1.fc.weight", "blocks.2.fc.bias", "head.bias"}) {
        m.tensors.push_back(tensor_sum(TensorKind::gradient, name, DType::fp32));
        m.tensors.back().first_nonfinite = {Rank{0}, Step{name[0] == 'h' ? 2 : 3}};
    }
    const Finding lost = judge(m).findings.at(0);
    EXPECT_THAT(lost.message, HasSubstr("reduce_scatter in bf16 of the gradients of blocks.1.fc.bias, "
                                        "blocks.1.fc.weight and 1 more made 5 non-finite values"));
    EXPECT_EQ(lost.layer, "blocks.1.fc");
    m.tensors.push_back(tensor_sum(TensorKind::parameter, "head.weight", DType::fp32));
    m.tensors.back().last.nonfinite_real = 5;
    EXPECT_EQ(find(judge(m), "MPT001"), nullptr) << "the sum over ranks lost the weights";
    m.collectives.clear();
    EXPECT_NE(find(judge(m), "MPT001"), nullptr);
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

TEST(Judge, MPT061CopiesThatOutliveTheirSource) {
    RunModel m = healthy();
    EXPECT_EQ(find(judge(m), "MPT061"), nullptr);
    m.notes.push_back({NoteKind::outdated_copy, "blocks.1.fc", 1, 1, Step{2}});
    m.notes.push_back({NoteKind::outdated_copy, "head", 1, 1, Step{1}});
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT061");
    EXPECT_EQ(f.severity, Severity::error);
    EXPECT_EQ(f.layer, "head");
    EXPECT_EQ(f.step, Step{1});
    EXPECT_THAT(f.message, HasSubstr("from step 1 on 2 layers"));
    EXPECT_THAT(f.advice, HasSubstr("once per step"));
    m = healthy();
    const auto not_run = [&] {
        return std::ranges::count(judge(m).not_run, "MPT061", &Judgement::NotRun::rule) == 1;
    };
    EXPECT_FALSE(not_run());
    m.ranks[0].process.framework = kRawFramework;
    EXPECT_TRUE(not_run()) << "autocast is of torch";
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
    EXPECT_THAT(j.findings[0].message,
                HasSubstr("on 7 sampled steps where their fp32 twins hold the same values"));
    m.tensors[0].replica_mismatches = 0;
    EXPECT_EQ(text_of(judge(m)), "") << "shards, whose twins differ";
}

// So many elements are 0 in step 2, and in the last one none is.
void flush(TensorSum& t, std::uint64_t elements) {
    t.most_flushed = static_cast<double>(elements) / static_cast<double>(t.last.compared);
    t.most_flushed_at = {Rank{0}, Step{2}};
}

// The second moment of a parameter is 0 where the first one is not, and the parameter went elsewhere.
RunModel flushed_moments() {
    RunModel m = healthy();
    for (const std::string state : {"exp_avg", "exp_avg_sq"}) {
        m.tensors.push_back(
            tensor_sum(TensorKind::optimizer_state, "blocks.0.fc.weight." + state, DType::fp32));
        flush(m.tensors.back(), 0);
    }
    flush(m.tensors.back(), kElements / 10);
    m.tensors[0].last.error_squares = 4;  // of 100
    return m;
}

TEST(Judge, MPT025AStateThatLosesItsSmallValues) {
    RunModel m = flushed_moments();
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT025"), nullptr) << text_of(j);
    EXPECT_EQ(find(j, "MPT025")->layer, "blocks.0.fc");
    EXPECT_EQ(find(j, "MPT025")->phase, Phase::optimizer);
    EXPECT_THAT(find(j, "MPT025")->message, HasSubstr("10 %"));
    EXPECT_EQ(find(j, "MPT025")->step, Step{2}) << "the small gradients of the first steps, not of the last";
}

TEST(Judge, MPT025AndTheAnswerAboutTheStateAgree) {
    const auto answer = [](const RunModel& model) {
        const Judgement j = judge(model);
        return *std::ranges::find(j.checks, std::string("optimizer state is fp32"), &Check::sentence);
    };
    RunModel m = flushed_moments();
    m.places.emplace_back();
    m.places[0].place.role = TensorRole::optimizer_state;
    m.places[0].place.dtype = DType::fp32;
    m.places[0].place.tensors = 2;
    m.places[0].place.elements = 2 * kElements;
    m.ops.push_back(op_sum("", "aten::copy_", Phase::optimizer, DType::fp16));
    m.ops.back().total.flushed_abs = 1;
    EXPECT_EQ(answer(m).answer, Check::Answer::no);
    EXPECT_THAT(answer(m).evidence,
                HasSubstr("fp32 131,072 elements; blocks.0.fc.weight.exp_avg_sq passes through fp16"));
    flush(m.tensors.back(), 0);
    EXPECT_EQ(answer(m).answer, Check::Answer::yes);
}

TEST(Judge, MPT025FewElementsThatLoseTheParameter) {
    RunModel m = flushed_moments();
    m.tensors.back().last.compared = m.tensors.back().last.elements = 100'000;
    flush(m.tensors.back(), 800);
    EXPECT_EQ(find(judge(m), "MPT025"), nullptr) << "0.8 % of the elements";
    m.tensors[0].last.error_squares = 36 * m.tensors[0].last.twin_squares;
    ASSERT_NE(find(judge(m), "MPT025"), nullptr) << "the parameter is off by 6 times its size";
    flush(m.tensors.back(), 60);
    EXPECT_EQ(find(judge(m), "MPT025"), nullptr);
}

TEST(Judge, MPT025AParameterWhoseErrorIsNaNIsTheWorst) {
    RunModel m = flushed_moments();
    m.tensors[0].last.error_squares = std::nan("");
    ASSERT_NE(find(judge(m), "MPT025"), nullptr);
    EXPECT_THAT(find(judge(m), "MPT025")->message, HasSubstr("off by inf"));
}

TEST(Judge, MPT025WhatHarmsNothingIsSilent) {
    RunModel m = flushed_moments();
    m.tensors[0].last.error_squares = 0.01;
    EXPECT_EQ(find(judge(m), "MPT025"), nullptr) << "the weights are those of the twin";
    m = flushed_moments();
    flush(m.tensors[m.tensors.size() - 2], kElements / 10);
    EXPECT_EQ(find(judge(m), "MPT025"), nullptr) << "the gradients are 0 there";
    m = flushed_moments();
    m.tensors[m.tensors.size() - 2].name = "blocks.0.fc.weight.z";  // weights, as Schedule-Free keeps them
    m.tensors.push_back(tensor_sum(TensorKind::gradient, "blocks.0.fc.weight", DType::fp32));
    flush(m.tensors.back(), kElements / 10);
    EXPECT_EQ(find(judge(m), "MPT025"), nullptr) << "a ReLU of the twin has a gradient there";
    flush(m.tensors.back(), kElements / 100);
    EXPECT_NE(find(judge(m), "MPT025"), nullptr);
}

}  // namespace
}  // namespace mp::trace
