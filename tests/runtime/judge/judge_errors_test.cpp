// Errors that ops introduce or amplify, and the range of values: a run that has the defect, and its twin that has not.

#include "runtime/judge/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;

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

// An op whose error is NaN is worse than one with a number, in any order.
TEST(Judge, MPT010AnErrorThatIsNaNIsTheWorst) {
    for (const int nan : {1, 2}) {
        RunModel m = healthy();
        for (const int i : {1, 2})
            m.ops.push_back(op_sum("blocks." + std::to_string(i) + ".norm", "aten::var", Phase::forward,
                                   DType::bf16, 8, 5 + static_cast<std::uint64_t>(i)));
        m.ops[m.ops.size() - 3 + static_cast<std::size_t>(nan)].total.loc_error_squares = std::nan("");
        const Judgement j = judge(m);
        ASSERT_FALSE(j.findings.empty()) << nan;
        EXPECT_EQ(j.findings[0].rule, "MPT010");
        EXPECT_EQ(j.findings[0].severity, Severity::error);
        EXPECT_EQ(j.findings[0].layer, "blocks." + std::to_string(nan) + ".norm") << text_of(j);
    }
}

TEST(Judge, MPT010AStepWhoseErrorIsNaNIsAboveTheLimit) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("blocks.1.norm", "aten::var", Phase::forward, DType::bf16, 8, 5));
    m.map = {{.layer = "blocks.1.norm", .phase = Phase::forward, .order = 5, .cells = {}}};
    for (const float phi : {1.F, std::nanf(""), 9.F})
        m.map[0].cells.push_back({.cum_phi = 1, .loc_phi = phi});
    EXPECT_EQ(judge(m).findings.at(0).step, Step{1});
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
    const std::string op = "aten::var";
    for (int i = 0; i < 6; ++i)
        m.ops.push_back(op_sum("blocks." + std::to_string(i) + ".norm", op, Phase::forward, DType::bf16,
                               i == 2 ? 12 : 8, 10 + static_cast<std::uint64_t>(i)));
    m.ops.push_back(op_sum("blocks.0.norm", op, Phase::forward, DType::fp16, 9, 20));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 2u) << "two dtypes:\n" << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.layer, "blocks.2.norm") << "the worst";
    EXPECT_EQ(f.more_layers.size(), 5u);
    EXPECT_THAT(f.message,
                HasSubstr("; and 5 more layers: blocks.0.norm, blocks.1.norm, blocks.3.norm, ...; "));
    EXPECT_GT(f.importance, 0.5) << "of all layers";
}

TEST(Judge, MPT023AKernelOfTorchIsANote) {
    RunModel m = healthy();
    for (const int i : {0, 1})
        m.ops.push_back(op_sum("blocks." + std::to_string(i) + ".norm", "aten::native_layer_norm_backward",
                               Phase::backward, DType::bf16, 8 + i, 10));
    m.tensors.push_back(gradient("blocks.0.norm.weight", 0.05, 1));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT023");
    EXPECT_EQ(f.severity, Severity::note);
    EXPECT_EQ(f.layer, "blocks.1.norm");
    EXPECT_THAT(f.message,
                HasSubstr("the kernel of torch 2.11.0+cpu on this device for layer_norm backward in "
                          "bf16 introduces 9.0 φ"));
    EXPECT_THAT(f.message, HasSubstr("1 more layer: blocks.0.norm"));
    // A formula that the program brings is the program's.
    m.ops.back().total.op = m.ops[3].total.op = "mine::norm_backward";
    EXPECT_EQ(judge(m).findings.at(0).rule, "MPT010");
}

// The kernel of a product on the CPU rounds a number in fp32 to bf16 first: up to 2.35 floors of one factor.
TEST(Judge, MPT023AKernelThatRoundsANumberFirst) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("GPT", "aten::mul", Phase::forward, DType::bf16, 1.8, 8));
    m.ops.back().total.loc_dot = -0.36 / 256 * m.ops.back().total.loc_squares;
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT023");
    EXPECT_EQ(j.findings[0].severity, Severity::note);
    EXPECT_THAT(j.findings[0].advice, HasSubstr("rounds a tensor without dimensions first"));
    m.ops.back().total.op = "aten::mm";
    EXPECT_EQ(judge(m).findings.at(0).rule, "MPT010") << "the program can ask for sums in fp32";
    m.ops.back().total.op = "mine::mul";
    EXPECT_EQ(judge(m).findings.at(0).rule, "MPT010") << "not a kernel of torch";
}

// 200 losses a step are added to one value in bf16, in four sampled steps of 100.
TEST(Judge, MPT012ASumOfLosses) {
    RunModel m = healthy();
    m.step_count = 100;
    for (StepSummary& s : m.steps) s.sampled = s.step.value % 2 == 0;
    OpSum s = op_sum("(loss)", "aten::add", Phase::forward, DType::bf16, 1, 20);
    s.total.calls = s.total.elements = s.total.compared = s.total.loc_compared = 800;
    s.total.added = 800;
    s.total.error_squares = 0.06 * 0.06 * s.total.twin_squares;
    m.ops.push_back(s);
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT012");
    EXPECT_THAT(j.findings[0].message, HasSubstr("of about 200 addends a step ends at 4"));
    EXPECT_THAT(j.findings[0].message, HasSubstr("it is off by 6 %"));
    m.ops.back().total.error_squares = 0.01 * 0.01 * s.total.twin_squares;
    EXPECT_EQ(text_of(judge(m)), "") << "of 40 addends";
    m.ops.back().total = s.total;
    m.ops.back().total.elements = 800 * 64;
    EXPECT_EQ(find(judge(m), "MPT012"), nullptr) << "a residual stream";
}

// A product that is added up one of 96 columns at a time in bf16: no addend is absorbed, each addition rounds.
TEST(Judge, MPT012ALongSumWhoseRoundingsAddUp) {
    const auto error_of = [](double floors) { return floors * 0.425 / 256; };
    RunModel m = healthy();
    m.ops.push_back(op_sum("fc", "aten::mul", Phase::forward, DType::bf16, 1, 20));
    m.ops.push_back(op_sum("fc", "aten::add", Phase::forward, DType::bf16, 1, 21));
    OpRecord& sum = m.ops.back().total;
    sum.calls = 96 * 8;
    sum.elements = sum.compared = sum.loc_compared = sum.added = 96 * 8 * 64;
    sum.error_squares = error_of(6) * error_of(6) * sum.twin_squares;
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT012"), nullptr) << text_of(j);
    EXPECT_EQ(find(j, "MPT012")->severity, Severity::warning);
    EXPECT_EQ(find(j, "MPT012")->layer, "fc");
    EXPECT_THAT(find(j, "MPT012")->message, HasSubstr("it is off by 6.0 φ"));
    OpRecord& addend = m.ops[m.ops.size() - 2].total;
    addend.error_squares = error_of(5.5) * error_of(5.5) * addend.twin_squares;
    EXPECT_EQ(find(judge(m), "MPT012"), nullptr) << "the addends were as wrong";
    addend.error_squares = error_of(1) * error_of(1) * addend.twin_squares;
    OpRecord far = m.ops.back().total;
    far.error_squares = error_of(275) * error_of(275) * far.twin_squares;
    addend.error_squares = error_of(200) * error_of(200) * addend.twin_squares;
    std::swap(far, m.ops.back().total);
    EXPECT_EQ(find(judge(m), "MPT012"), nullptr) << "far more than 96 roundings: the twin is elsewhere";
    std::swap(far, m.ops.back().total);
    addend.error_squares = error_of(1) * error_of(1) * addend.twin_squares;
    m.ops.back().total.calls = 24 * 8;
    EXPECT_EQ(find(judge(m), "MPT012"), nullptr) << "a residual stream of 12 blocks";
}

// A cast to e4m3 in layer blocks.0.fc, the cast back, and a product that inherits an error of `arrives`.
void add_narrowed(RunModel& m, Phase phase, std::uint64_t first, double arrives) {
    m.ops.push_back(op_sum("blocks.0.fc", "aten::copy_", phase, DType::e4m3, 0, first));
    m.ops.back().total.error_squares =
        std::pow(one_rounding_floor(DType::e4m3), 2) * m.ops.back().total.twin_squares;
    m.ops.push_back(op_sum("blocks.0.fc", "aten::copy_", phase, DType::bf16, 0, first + 1));
    m.ops.push_back(op_sum("blocks.0.fc", "aten::addmm", phase, DType::bf16, 1, first + 2));
    m.ops.back().total.prop_error_squares = arrives * arrives * m.ops.back().total.loc_squares;
}

RunModel narrowed(double arrives = one_rounding_floor(DType::e4m3)) {
    RunModel m = healthy();
    m.tensors = {gradient("blocks.0.fc.weight", 0.026, 1), gradient("embed.weight", 0.01, 1)};
    add_narrowed(m, Phase::forward, 10, arrives);
    return m;
}

TEST(Judge, MPT014AValueThroughFp8) {
    RunModel m = narrowed();
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT014");
    EXPECT_EQ(f.severity, Severity::warning);
    EXPECT_EQ(f.layer, "blocks.0.fc");
    EXPECT_EQ(f.phase, Phase::forward);
    EXPECT_THAT(f.message, HasSubstr("rounds a value that addmm reads in bf16: it is off by 2.7 %"));
    EXPECT_THAT(f.message, HasSubstr("such casts explain 87 % of the gradients' error"));
    add_narrowed(m, Phase::backward, 20, one_rounding_floor(DType::e4m3));
    m.tensors[1] = gradient("embed.weight", 0.026, 2);
    EXPECT_EQ(judge(m).findings.at(0).phase, Phase::forward) << "autograd casts the gradient likewise";
    std::erase_if(m.ops, [](const OpSum& s) { return s.total.phase == Phase::forward; });
    m.tensors.push_back(gradient("blocks.1.fc.weight", 0.026, 1));
    EXPECT_THAT(judge(m).findings.at(0).message, HasSubstr("such casts explain 50 %"))
        << "not its own layer's, nor what was computed before";
    m.tensors[1] = gradient("embed.weight", 1, 1);
    EXPECT_EQ(find(judge(m), "MPT014")->severity, Severity::note) << "most of the error comes from elsewhere";
}

TEST(Judge, MPT014IsSilentWhereFp8IsReadOrCostsNothing) {
    RunModel m = narrowed();
    m.ops[4].total.dtype = DType::e5m2;
    EXPECT_EQ(text_of(judge(m)), "") << "no cast back: the product reads fp8";
    EXPECT_EQ(text_of(judge(narrowed(0.001))), "") << "the error does not arrive";
    m = narrowed();
    m.ops[3].total.error_squares *= 9;
    EXPECT_EQ(text_of(judge(m)), "") << "the value was off before the cast";
    m = narrowed();
    for (OpSum& s : m.ops) s.total.phase = Phase::optimizer;
    EXPECT_EQ(find(judge(m), "MPT014"), nullptr) << "state that an optimizer keeps in fp8";
}

TEST(Judge, MPT023ANormInForwardIsAKernelOfTorch) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("stage2.0.bn", "aten::native_batch_norm", Phase::forward, DType::bf16, 4, 10));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT023");
    EXPECT_THAT(j.findings[0].message, HasSubstr("batch_norm forward in bf16 introduces 4.0 φ"));
}

TEST(Judge, MPT010AKernelThatExplainsTheUpdatesError) {
    RunModel m = healthy();
    m.ops.push_back(
        op_sum("embedding", "aten::embedding_dense_backward", Phase::backward, DType::bf16, 500, 10));
    m.tensors.push_back(gradient("embedding.weight", 0.9, 1));
    m.tensors.push_back(gradient("head.weight", 0.05, 10));
    m.ops.push_back(op_sum("head", "aten::mm", Phase::backward, DType::bf16, 1, 6));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT010");
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_EQ(j.findings[0].layer, "embedding");
    // The same error in a gradient that is a small part of all errors.
    m.tensors[3] = gradient("head.weight", 0.9, 100);
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::note) << text_of(judge(m));
    m.tensors[3] = gradient("head.weight", 0.9, 2);
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::note) << "a third of the error";
    for (StepSummary& s : m.steps) s.loss = 1.15 * s.twin_loss;
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::error) << "and the loss departs";
    for (StepSummary& s : m.steps) s.loss = s.twin_loss;
    m.tensors[2] = gradient("embedding.weight", 0.2, 1);
    m.tensors[3] = gradient("head.weight", 0.05, 10);
    m.ops[3] = op_sum("embedding", "aten::embedding_dense_backward", Phase::backward, DType::bf16, 100, 10);
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::note) << "17 % of its results";
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
    m.ops.push_back(op_sum("head", "aten::addmm", Phase::forward, DType::bf16, 1, 20));
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
    EXPECT_THAT(f.message,
                HasSubstr("sin of attention turns an input error of 0.2 % into 28 % (limit 21 %)"));
    EXPECT_THAT(f.message, HasSubstr("so does cos"));
    EXPECT_THAT(f.advice, HasSubstr("fp32"));
}

// The error is largest in step 2, and beyond the limit from step 1 on.
TEST(Judge, MPT013TheFirstStepAboveTheLimit) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("head", "aten::addmm", Phase::forward, DType::bf16, 1, 20));
    m.ops.push_back(amplified("aten::sin", 0.002, 0.28, 6));
    const auto off_by = [](double error) {
        return Cell{.cum_phi = static_cast<float>(floor_ratio(error, DType::bf16))};
    };
    m.map.push_back({"attention", Phase::forward, 6, {off_by(0.2), off_by(0.22), off_by(0.3)}});
    EXPECT_EQ(judge(m).findings.at(0).step, Step{1});
    m.map.back().cells.resize(1);
    EXPECT_EQ(judge(m).findings.at(0).step, Step{2}) << "the worst, where none is";
    m.map.back().cells = {off_by(0.3)};
    m.column_steps = 2;
    EXPECT_EQ(judge(m).findings.at(0).step, Step{2}) << "a column is not a step";
}

TEST(Judge, MPT013IsSilentWithoutAmplification) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("head", "aten::addmm", Phase::forward, DType::bf16, 1, 20));
    m.ops.push_back(amplified("aten::cos", 0.002, 0.21, 5));
    EXPECT_EQ(judge(m).findings.at(0).severity, Severity::warning) << "a rounding to one bit errs by 0.2125";
    m.ops.back() = amplified("aten::cos", 0.002, 0.105, 5);
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

// (scale - 1) * x, which the layer around adds to x.
TEST(Judge, MPT013ACorrectionOfALargerValueIsNoAmplifiedError) {
    RunModel m = healthy();
    m.ops.push_back(op_sum("head", "aten::addmm", Phase::forward, DType::bf16, 1, 20));
    m.ops.push_back(amplified("aten::sub", 0.002, 0.3, 5));
    m.ops.back().total.layer = "q_proj.magnitude.default";
    EXPECT_NE(find(judge(m), "MPT013"), nullptr);
    m.ops.push_back(op_sum("q_proj", "aten::add", Phase::forward, DType::bf16, 1, 8));
    EXPECT_EQ(text_of(judge(m)), "");
    const RunModel sound = m;
    m.ops.push_back(op_sum("q_proj.out", "aten::mm", Phase::forward, DType::bf16, 1, 7));
    EXPECT_NE(find(judge(m), "MPT013"), nullptr) << "a product reads it first";
    m = sound;
    m.ops.back().total.layer = "q_pro";
    EXPECT_NE(find(judge(m), "MPT013"), nullptr) << "another layer";
    m = sound;
    m.ops.back().total.error_squares = m.ops.back().total.twin_squares * 0.2 * 0.2;
    EXPECT_NE(find(judge(m), "MPT013"), nullptr) << "the sum is wrong too";
    m = sound;
    m.ops.back().total.first = 4;
    EXPECT_NE(find(judge(m), "MPT013"), nullptr) << "before the difference";
    m = sound;
    m.ops.back().total.op = "aten::cat";
    EXPECT_NE(find(judge(m), "MPT013"), nullptr) << "nothing is added";
    m = sound;
    m.ops[m.ops.size() - 2].total.op = "aten::cos";
    EXPECT_NE(find(judge(m), "MPT013"), nullptr) << "no difference";
}

// A table of cosines is made with the model, outside of its layers and before its first forward.
TEST(Judge, MPT013ATableThatIsMadeBeforeTheModelRuns) {
    RunModel m = healthy();
    m.ops[0].total.first = 20;
    m.ops[1].total.first = 23;
    m.ops.push_back(amplified("aten::cos", 0.002, 0.28, 5));
    OpRecord& cosine = m.ops.back().total;
    cosine.layer = "(data)";
    cosine.phase = Phase::data;
    EXPECT_EQ(judge(m).findings.at(0).rule, "MPT013");
    EXPECT_EQ(judge(m).findings.at(0).op, "aten::cos");
    cosine.first = 24;
    EXPECT_EQ(text_of(judge(m)), "") << "a metric after the model";
    cosine.first = 5;
    m.ops.back().first_step = Step{1};
    EXPECT_EQ(text_of(judge(m)), "") << "not with the model";
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
    EXPECT_THAT(find(j, "MPT030")->advice, HasSubstr("scale the loss"));
    m.ops[2].total.dtype = DType::e4m3;
    EXPECT_THAT(judge(m).findings.at(0).advice, HasSubstr("a factor of its own before it is stored in e4m3"));
    m.ops[2].total.dtype = DType::fp16;
    m.ops[2].total.flushed_abs = 0.005 * s.total.twin_abs;
    EXPECT_EQ(find(judge(m), "MPT030"), nullptr);
    m.ops[2].total.twin_abs = 9;
    m.ops[2].total.flushed_abs = 3;
    EXPECT_EQ(find(judge(m), "MPT030"), nullptr) << "the twin's values there fit: the run has drifted";
}

// A result in fp16 whose values are below the format.
OpSum flushed(std::string layer, std::string op, Phase phase, std::uint64_t first) {
    OpSum s = op_sum(std::move(layer), std::move(op), phase, DType::fp16, 1, first);
    s.total.subnormals = kElements / 10;
    s.total.zeros = kElements / 2;
    s.total.twin_abs = 2e-3;
    s.total.flushed_abs = 4e-4;
    return s;
}

TEST(Judge, MPT030ValuesThatNothingReadsSeparately) {
    RunModel m = healthy();
    m.ops.push_back(flushed("attention", "aten::div", Phase::forward, 10));
    OpSum softmax = op_sum("attention", "aten::_softmax", Phase::forward, DType::fp16, 1, 11);
    m.ops.push_back(softmax);
    EXPECT_EQ(text_of(judge(m)), "") << "scores near 0: their softmax is right";
    m.ops.back().total.error_squares = 0.1 * 0.1 * softmax.total.twin_squares;
    ASSERT_NE(find(judge(m), "MPT030"), nullptr) << "what reads them is off by 10 %";
    EXPECT_EQ(find(judge(m), "MPT030")->layer, "attention");
}

TEST(Judge, MPT030GradientsThatAreNothingBesideTheOthers) {
    RunModel m = healthy();
    m.tensors = {gradient("query.weight", 0.1, 1), gradient("head.weight", 0.01, 1),
                 gradient("value.weight", 0.01, 1)};
    for (TensorSum& t : m.tensors) t.last.twin_squares = 1;
    m.ops.push_back(flushed("scores", "aten::bmm", Phase::backward, 10));
    m.ops.push_back(op_sum("query", "aten::mm", Phase::backward, DType::fp16, 1, 11));
    ASSERT_NE(find(judge(m), "MPT030"), nullptr) << text_of(judge(m));
    m.tensors[0].last.twin_squares = 1e-10;
    EXPECT_EQ(text_of(judge(m)), "");
    m.ops[3] = flushed("query", "aten::mm", Phase::backward, 10);
    EXPECT_EQ(text_of(judge(m)), "");
    m.ops[3] = flushed("value", "aten::mm", Phase::backward, 10);
    EXPECT_NE(find(judge(m), "MPT030"), nullptr);
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
    // Nobody chose the largest value of arange: it computes positions.
    m.ops[1].total.op = "aten::arange";
    EXPECT_NE(find(judge(m), "MPT031"), nullptr);
    m.ops[1].total.amax = 16'000;
    EXPECT_EQ(text_of(judge(m)), "");
}

}  // namespace
}  // namespace mp::trace
