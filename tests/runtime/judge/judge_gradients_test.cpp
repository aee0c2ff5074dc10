// MPT026: gradients that depart from their fp32 twins.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/judge/judge.hpp"
#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;

// A difference in the backward of `layer`: an error of its inputs grows `amplification`-fold.
OpSum cancelling(std::string layer, double amplification, double inherited) {
    OpSum s = op_sum(std::move(layer), "aten::sub", Phase::backward, DType::bf16, 1, 5);
    s.total.amplification = amplification;
    s.total.prop_error_squares = inherited * inherited * s.total.loc_squares;
    return s;
}

TEST(Judge, MPT026AnOpOfBackwardThatCancels) {
    RunModel m = healthy();
    m.tensors = {gradient("pool.query.weight", 0.5, 1), gradient("head.weight", 0.01, 100)};
    m.ops.push_back(cancelling("pool", 300, 0.6));
    m.ops.push_back(op_sum("pool.query", "aten::mm", Phase::backward, DType::bf16, 1, 7));
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    const Finding& f = j.findings[0];
    EXPECT_EQ(f.rule, "MPT026");
    EXPECT_EQ(f.severity, Severity::error);
    EXPECT_EQ(f.layer, "pool");
    EXPECT_THAT(f.message, HasSubstr("grows 300-fold, so one rounding of them costs 50 %"));
    EXPECT_THAT(f.message, HasSubstr("most of it in pool.query.weight, which is off by 50 %"));
}

TEST(Judge, MPT026GradientsThatCancelInSoundRuns) {
    RunModel m = healthy();
    m.tensors = {gradient("pool.query.weight", 0.5, 1e-6), gradient("head.weight", 0.01, 100)};
    m.ops.push_back(op_sum("head", "aten::mm", Phase::backward, DType::bf16, 1, 4));
    m.ops.push_back(op_sum("pool.query", "aten::mm", Phase::backward, DType::bf16, 1, 7));
    m.ops.push_back(cancelling("pool", 300, 0.6));
    EXPECT_EQ(text_of(judge(m)), "") << "the gradients that it spoils are nearly 0";
    m.tensors[0] = gradient("pool.query.weight", 0.5, 1);
    m.ops.back() = cancelling("pool", 5, 0.6);
    EXPECT_EQ(text_of(judge(m)), "") << "run and twin have parted: the error came with the inputs";
    m.ops.back() = cancelling("pool", 300, 0.05);
    EXPECT_EQ(text_of(judge(m)), "") << "a few values cancel, most do not";
    m.ops.back() = cancelling("pool", 300, 0.6);
    m.tensors[0] = gradient("pool.query.weight", 0.015, 1);
    m.tensors[1] = gradient("head.weight", 0.001, 1);
    EXPECT_EQ(text_of(judge(m)), "") << "the gradients are right";
    m.tensors.clear();
    EXPECT_EQ(text_of(judge(m)), "") << "no gradient is compared";
}

// Several ops make the error, each a part of it: the first step, before any update, shows that it is made of roundings.
TEST(Judge, MPT026ADifferenceOfValuesThatWereRoundedBefore) {
    RunModel m = healthy();
    m.tensors = {gradient("head.weight", 0.5, 1)};
    m.ops.push_back(cancelling("criterion", 40, 0.6));
    m.map.push_back(
        {.layer = "criterion", .phase = Phase::backward, .order = 5, .cells = std::vector<Cell>(8)});
    EXPECT_EQ(find(judge(m), "MPT026"), nullptr) << "not known of the first step";
    m.map.back().cells[0].cum_phi = static_cast<float>(0.5 / one_rounding_floor(DType::bf16));
    ASSERT_NE(find(judge(m), "MPT026"), nullptr);
    EXPECT_THAT(find(judge(m), "MPT026")->message, HasSubstr("so the roundings before it cost 50 %"));
    m.ops.back().total.amplification = 8;
    EXPECT_EQ(find(judge(m), "MPT026"), nullptr) << "the error is that of its inputs";
}

TEST(Judge, MPT026AnOpThatChoosesByValuesIsNoCause) {
    RunModel m = healthy();
    m.tensors = {gradient("stem.weight", 0.5, 1)};
    m.ops.push_back(cancelling("act", 300, 0.6));
    for (const char* op :
         {"aten::threshold_backward", "aten::hardtanh_backward", "aten::max_pool2d_with_indices_backward"}) {
        m.ops.back().total.op = op;
        EXPECT_EQ(find(judge(m), "MPT026"), nullptr) << op;
    }
    m.ops.back().total.op = "aten::_softmax_backward_data";
    EXPECT_NE(find(judge(m), "MPT026"), nullptr);
}

TEST(Judge, MPT026GradientsThatNoStepUsed) {
    RunModel m = healthy();
    m.tensors = {gradient("pool.query.weight", 0.5, 1)};
    m.ops.push_back(cancelling("pool", 300, 0.6));
    m.skipped_steps = m.step_count = 5;
    EXPECT_EQ(find(judge(m), "MPT026"), nullptr);
    m.skipped_steps = 4;
    EXPECT_NE(find(judge(m), "MPT026"), nullptr);
}

TEST(Judge, MPT026ASumThatIsZeroInTheory) {
    RunModel m = healthy();
    m.tensors = {gradient("stem.weight", 0.5, 1)};
    m.ops.push_back(cancelling("criterion", 50000, 2));
    EXPECT_NE(find(judge(m), "MPT026"), nullptr);
    m.ops.back().total.amplification = 200000;
    EXPECT_EQ(find(judge(m), "MPT026"), nullptr);
}

// The sum over the batch that makes the gradient of a bias before a batch norm, after the product for the weight.
TEST(Judge, MPT026TheGradientOfABiasIsNotTheWeights) {
    RunModel m = healthy();
    m.tensors = {gradient("fc.weight", 0.13, 1), gradient("fc.bias", 0.9, 1e-6)};
    m.tensors[0].last.elements = 64 * 784;
    m.tensors[1].last.elements = 64;
    m.ops.push_back(cancelling("fc", 7000, 2));
    m.ops.back().total.elements = m.ops.back().total.calls * 64;
    m.ops.push_back(op_sum("fc", "aten::mm", Phase::backward, DType::bf16, 1, 4));
    EXPECT_EQ(find(judge(m), "MPT026"), nullptr);
    m.ops.push_back(op_sum("fc", "aten::mul", Phase::backward, DType::fp32, 1, 9));
    EXPECT_EQ(find(judge(m), "MPT026"), nullptr) << "DDP divides the gradients by the number of ranks";
    m.ops.pop_back();
    m.ops.back().total.first = 9;
    EXPECT_NE(find(judge(m), "MPT026"), nullptr) << "a product makes the weight's gradient of it";
}

}  // namespace
}  // namespace mp::trace
