#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/judge/models.hpp"

// Findings about matrix products and collectives of programs without torch, whose descriptors are all that is judged.

namespace mp::trace::test {
namespace {

using testing::HasSubstr;

const Finding* find_rule(const Judgement& j, std::string_view rule) {
    const auto at = std::ranges::find(j.findings, rule, &Finding::rule);
    return at == j.findings.end() ? nullptr : &*at;
}

RunModel raw_run(DType dtype) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    for (StepSummary& s : m.steps) s.has_twin = s.has_loss = false;
    m.tensors.clear();
    OpSum op = op_sum("Layer 2/attention", "cublasLt::matmul", Phase::forward, dtype);
    op.total.compared = op.total.loc_compared = 0;
    op.total.depth = 768;
    m.ops = {op};
    return m;
}

CollectiveTotal average(std::uint64_t ranks, DType dtype) {
    CollectiveTotal c;
    c.total.op = "reduce_scatter";
    c.total.reduction = "avg";
    c.total.dtype = dtype;
    c.total.calls = 24;
    c.total.ranks = ranks;
    return c;
}

TEST(Judge, MPT073AverageByARoundedFactor) {
    RunModel m = raw_run(DType::bf16);
    m.collectives = {average(3, DType::bf16)};
    const Judgement j = judge(m);
    const Finding* const f = find_rule(j, "MPT073");
    ASSERT_TRUE(f);
    EXPECT_EQ(f->severity, Severity::warning);
    EXPECT_THAT(f->message, HasSubstr("+0.195 %"));
    m.collectives = {average(7, DType::bf16)};
    const Judgement seven = judge(m);
    ASSERT_TRUE(find_rule(seven, "MPT073"));
    EXPECT_THAT(find_rule(seven, "MPT073")->message, HasSubstr("-0.195 %"));
}

TEST(Judge, MPT073IsSilentForExactFactorsAndWideFormats) {
    RunModel m = raw_run(DType::bf16);
    for (const auto& c : {average(4, DType::bf16), average(3, DType::fp32), average(0, DType::bf16)}) {
        m.collectives = {c};
        EXPECT_EQ(find_rule(judge(m), "MPT073"), nullptr) << c.total.ranks;
    }
    m.collectives = {average(3, DType::bf16)};
    m.collectives[0].total.reduction = "sum";
    EXPECT_EQ(find_rule(judge(m), "MPT073"), nullptr);
}

TEST(Judge, MPT071TermsAddedInHalf) {
    RunModel m = raw_run(DType::fp16);
    EXPECT_EQ(find_rule(judge(m), "MPT071"), nullptr);
    m.ops[0].total.half_sums = 8;
    const Judgement j = judge(m);
    const Finding* const f = find_rule(j, "MPT071");
    ASSERT_TRUE(f);
    EXPECT_EQ(f->severity, Severity::error);
    EXPECT_EQ(f->layer, "Layer 2/attention");
    EXPECT_THAT(f->message, HasSubstr("768 terms in fp16"));
    m.ops[0].total.depth = 64;  // four roundings cost less than the store allows
    EXPECT_EQ(find_rule(judge(m), "MPT071"), nullptr);
}

TEST(Judge, MPT072SplitSums) {
    RunModel m = raw_run(DType::bf16);
    EXPECT_EQ(find_rule(judge(m), "MPT072"), nullptr);
    m.ops[0].total.split_sums = 3;
    const Judgement j = judge(m);
    ASSERT_TRUE(find_rule(j, "MPT072"));
    EXPECT_EQ(find_rule(j, "MPT072")->severity, Severity::warning);
}

TEST(Judge, MPT050SumOfFiniteInputsWithoutATwin) {
    RunModel m = raw_run(DType::fp16);
    m.collectives = {average(2, DType::fp16)};
    m.collectives[0].total.finite_inputs = 8;
    m.collectives[0].total.lost_results = 1;
    m.collectives[0].first_nonfinite = Step{3};
    EXPECT_EQ(find_rule(judge(m), "MPT050"), nullptr) << "the other rank may have had the infinity";
    m.ranks.push_back(m.ranks[0]);
    const Judgement j = judge(m);
    ASSERT_TRUE(find_rule(j, "MPT050"));
    EXPECT_EQ(find_rule(j, "MPT050")->step, Step{3});
    m.collectives[0].total.lost_inputs = 1;
    EXPECT_EQ(find_rule(judge(m), "MPT050"), nullptr) << "it only passed the infinity on";
}

TensorSum named_weight(TensorKind kind, DType dtype, std::uint64_t unmoved) {
    TensorSum t = tensor_sum(kind, "Layer 0/mlp/weight", dtype);
    t.samples = 2;
    t.meant_to_move = 2 * kElements;
    t.unmoved = unmoved;
    t.first_stagnant = Step{0};
    return t;
}

TEST(Judge, MPT040NamedWeightsWithoutAMaster) {
    RunModel m = raw_run(DType::bf16);
    m.ranks[0].process.framework = kRawFramework;
    m.tensors = {named_weight(TensorKind::parameter, DType::bf16, 2 * kElements - 9)};
    const Judgement j = judge(m);
    ASSERT_TRUE(find_rule(j, "MPT040"));
    EXPECT_EQ(find_rule(j, "MPT040")->severity, Severity::warning)
        << "some moved: it may round stochastically";
    m.tensors.push_back(named_weight(TensorKind::optimizer_state, DType::fp32, 0));
    EXPECT_EQ(find_rule(judge(m), "MPT040"), nullptr) << "a master takes the updates";
    m.tensors.pop_back();
    m.ranks[0].process.framework = "torch 2.11.0";
    EXPECT_EQ(find_rule(judge(m), "MPT040"), nullptr) << "a torch program does not name its masters";
}

}  // namespace
}  // namespace mp::trace::test
