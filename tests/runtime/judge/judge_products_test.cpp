#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/trace/note_texts.hpp"
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

// 144 rows in blocks of 32 with an error of `others` times what rounding explains, and one block of `block` times.
ProductSum sketched(double block, double others, DType dtype = DType::bf16) {
    ProductSum p;
    ProductRecord& r = p.worst;
    r.layer = "Layer 2/mlp";
    r.op = "cublasLt::matmul";
    r.phase = Phase::backward;
    r.dtype = dtype;
    r.rows = r.sketched_rows = 144;
    r.squares = 144;
    r.rounding_squares = 144 * 1e-6;
    r.first_row = 128;
    r.block_squares = 16;
    r.block_rounding_squares = 16 * 1e-6;
    r.block_error_squares = block * block * r.block_rounding_squares;
    r.error_squares = r.block_error_squares + others * others * 128 * 1e-6;
    p.worst_at = {Rank{1}, Step{4}};
    p.products = 3;
    return p;
}

TEST(Judge, MPT078NamesTheRowsThatAreWrongAlone) {
    RunModel m = raw_run(DType::bf16);
    m.products = {sketched(1, 1), sketched(20, 1), sketched(200, 1)};
    const Judgement j = judge(m);
    const Finding* const f = find_rule(j, "MPT078");
    ASSERT_TRUE(f);
    EXPECT_EQ(f->severity, Severity::error);
    EXPECT_EQ(f->basis, Basis::sampled);
    EXPECT_EQ(f->rank, Rank{1});
    EXPECT_EQ(f->step, Step{4});
    EXPECT_THAT(f->message, HasSubstr("rows 128 to 143 of 144"));
    EXPECT_THAT(f->message, HasSubstr("200 times what rounding explains"));
    EXPECT_THAT(f->message, HasSubstr("1 other place"));
}

TEST(Judge, MPT078RowsWhoseErrorIsNaNAreTheWorst) {
    ProductSum nan = sketched(20, 1);
    nan.worst.block_error_squares = nan.worst.error_squares = std::nan("");
    nan.worst.layer = "Layer 7/mlp";
    for (const bool first : {false, true}) {
        RunModel m = raw_run(DType::bf16);
        m.products = {sketched(200, 1)};
        m.products.insert(first ? m.products.begin() : m.products.end(), nan);
        const Judgement j = judge(m);
        const Finding* const f = find_rule(j, "MPT078");
        ASSERT_TRUE(f);
        EXPECT_EQ(f->layer, "Layer 7/mlp") << first;
    }
}

TEST(Judge, MPT078IsSilentWhereAllRowsAreAlike) {
    RunModel m = raw_run(DType::bf16);
    for (const ProductSum& p : {sketched(1, 1), sketched(5.9, 0.1), sketched(50, 20), sketched(0, 0)}) {
        m.products = {p};
        EXPECT_EQ(find_rule(judge(m), "MPT078"), nullptr) << p.worst.block_error_squares;
    }
    m.products = {sketched(7, 1)};
    EXPECT_TRUE(find_rule(judge(m), "MPT078"));
    Limits wider;
    wider.local_fault_phi = 8;
    EXPECT_EQ(find_rule(judge(m, wider), "MPT078"), nullptr);
    // Sums in 16 bits cost some rows more than others.
    OpRecord halves;
    halves.layer = m.products[0].worst.layer;
    halves.op = m.products[0].worst.op;
    halves.phase = m.products[0].worst.phase;
    halves.dtype = DType::bf16;
    halves.half_sums = 3;
    OpSum& op = m.ops.emplace_back();
    op.total = halves;
    EXPECT_EQ(find_rule(judge(m), "MPT078"), nullptr);
    op.total.layer = "Layer 3/mlp";
    EXPECT_TRUE(find_rule(judge(m), "MPT078"));
}

TEST(Judge, MPT076CollectivePastItsBuffers) {
    RunModel m = raw_run(DType::bf16);
    m.collectives = {average(2, DType::fp32)};
    EXPECT_EQ(find_rule(judge(m), "MPT076"), nullptr);
    m.collectives[0].total.beyond = 2;
    const Judgement j = judge(m);
    ASSERT_TRUE(find_rule(j, "MPT076"));
    EXPECT_EQ(find_rule(j, "MPT076")->severity, Severity::error);
}

TEST(Judge, MPT077ResultsThatDifferBetweenRanks) {
    RunModel m = raw_run(DType::bf16);
    m.collectives = {average(2, DType::bf16)};
    EXPECT_EQ(find_rule(judge(m), "MPT077"), nullptr);
    m.collectives[0].total.op = "all_reduce";
    m.collectives[0].differing = 3;
    m.collectives[0].differs_at = {Rank{1}, Step{4}};
    const Judgement j = judge(m);
    ASSERT_TRUE(find_rule(j, "MPT077"));
    EXPECT_EQ(find_rule(j, "MPT077")->rank, Rank{1});
}

TEST(Judge, TheRankOfACommunicatorIsNotTheRankOfTheProcess) {
    RunModel m = raw_run(DType::fp16);
    m.collectives = {average(2, DType::fp16)};
    CollectiveTotal& t = m.collectives[0];
    t.total.op = "all_reduce";
    t.total.reduction = "sum";
    t.differing = 3;
    t.differs_at = {Rank{5}, Step{4}};
    t.differs_for = {0x9f3cull << 24, Rank{1}, -1};
    t.total.lost_results = 1;
    t.first_nonfinite = Step{4};
    t.first_lost = {Rank{5}, Step{4}};
    t.lost_by = {0x9f3cull << 24, Rank{1}, 3};
    m.ranks.resize(1);
    EXPECT_EQ(find_rule(judge(m), "MPT050"), nullptr) << "the other rank left no recording";
    m.ranks[0].process.local_ranks = 2;
    const Judgement j = judge(m);
    ASSERT_TRUE(find_rule(j, "MPT077") && find_rule(j, "MPT050"));
    EXPECT_EQ(find_rule(j, "MPT077")->rank, Rank{5});
    EXPECT_NE(find_rule(j, "MPT077")->message.find("gave rank 1 of communicator 9f3c other"),
              std::string::npos);
    EXPECT_EQ(find_rule(j, "MPT050")->rank, Rank{5});
    EXPECT_NE(find_rule(j, "MPT050")->message.find("first on rank 1 of communicator 9f3c on device 3"),
              std::string::npos);
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

// As if `elements` elements had an error of `floors`.
void measure(OpRecord& op, double floors, std::uint64_t elements = 1024) {
    op.elements = elements * 100;
    op.loc_compared = elements;
    op.loc_squares = static_cast<double>(elements);
    const double relative = floors * one_rounding_floor(op.dtype);
    op.loc_error_squares = op.loc_squares * relative * relative;
}

TEST(Judge, MPT071TakesWhatWasMeasured) {
    RunModel m = raw_run(DType::fp16);
    m.ops[0].total.half_sums = 8;  // 4.9 floors are expected
    measure(m.ops[0].total, 1.2);
    EXPECT_EQ(find_rule(judge(m), "MPT071"), nullptr);
    measure(m.ops[0].total, 1.8);
    const Judgement j = judge(m);
    const Finding* const f = find_rule(j, "MPT071");
    ASSERT_TRUE(f);
    EXPECT_EQ(f->severity, Severity::warning);
    EXPECT_THAT(f->message, HasSubstr("sampled, 1,024 elements, 8 calls"));
    EXPECT_EQ(find_rule(j, "MPT010"), nullptr);  // one cause, one finding
}

TEST(Judge, MPT072IsANoteWhereASplitCostsNothing) {
    RunModel m = raw_run(DType::bf16);
    m.ops[0].total.split_sums = 8;
    for (const auto& [floors, severity] : {std::pair(1.4, Severity::note), std::pair(1.8, Severity::warning),
                                           std::pair(3.0, Severity::error)}) {
        measure(m.ops[0].total, floors);
        const Judgement j = judge(m);
        ASSERT_TRUE(find_rule(j, "MPT072"));
        EXPECT_EQ(find_rule(j, "MPT072")->severity, severity) << floors;
    }
}

// No argument of the call tells of it: cuBLAS may choose an algorithm that adds in 16 bits.
TEST(Judge, MPT010OfAProductWithoutATwin) {
    RunModel m = raw_run(DType::bf16);
    measure(m.ops[0].total, 1.05);
    EXPECT_EQ(find_rule(judge(m), "MPT010"), nullptr);
    measure(m.ops[0].total, 3);
    const Judgement j = judge(m);
    const Finding* const f = find_rule(j, "MPT010");
    ASSERT_TRUE(f);
    EXPECT_EQ(f->severity, Severity::error);
    EXPECT_THAT(f->message, HasSubstr("over 1,024 sampled elements"));
    m.ops[0].total.dtype = DType::fp32;  // the order of a sum, or TF32: a choice
    EXPECT_EQ(find_rule(judge(m), "MPT010"), nullptr);
}

TEST(Judge, MPT074UpdateWithLostGradients) {
    RunModel m = raw_run(DType::bf16);
    EXPECT_EQ(find_rule(judge(m), "MPT074"), nullptr);
    m.ops[0].total.unguarded = 5;
    const Judgement j = judge(m);
    const Finding* const f = find_rule(j, "MPT074");
    ASSERT_TRUE(f);
    EXPECT_EQ(f->severity, Severity::error);
    EXPECT_EQ(f->step, Step{4});
}

TEST(Judge, MPT075EmulatedBf16) {
    RunModel m = raw_run(DType::bf16);
    EXPECT_EQ(find_rule(judge(m), "MPT075"), nullptr);
    m.ops[0].total.emulated = 8;
    const Judgement j = judge(m);
    ASSERT_TRUE(find_rule(j, "MPT075"));
    EXPECT_EQ(find_rule(j, "MPT075")->severity, Severity::warning);
}

TEST(Judge, MPT060Tf32AgainstThePolicy) {
    RunModel m = raw_run(DType::fp32);
    m.ops[0].total.tf32 = 8;
    EXPECT_EQ(find_rule(judge(m), "MPT060"), nullptr);  // a choice
    EXPECT_EQ(find_rule(judge(m, {}, {"tf32:matmul=on"}), "MPT060"), nullptr);
    const Judgement j = judge(m, {}, {"tf32:matmul=off"});
    ASSERT_TRUE(find_rule(j, "MPT060"));
    EXPECT_TRUE(std::ranges::any_of(j.checks, &Check::violated));
    m.ops[0].total.tf32 = 0;
    EXPECT_EQ(find_rule(judge(m, {}, {"tf32:matmul=off"}), "MPT060"), nullptr);
}

TEST(Judge, MPT060Tf32OfConvolutionsHasASwitchOfItsOwn) {
    for (const char* const op :
         {"aten::convolution", "aten::convolution_backward", "cudnnConvolutionForward"}) {
        RunModel m = raw_run(DType::fp32);
        m.ops[0].total.op = op;
        m.ops[0].total.tf32 = 8;
        EXPECT_EQ(find_rule(judge(m, {}, {"tf32:matmul=off,cudnn=on"}), "MPT060"), nullptr) << op;
        const Judgement j = judge(m, {}, {"tf32:matmul=on,cudnn=off"});
        const Finding* const f = find_rule(j, "MPT060");
        ASSERT_TRUE(f) << op;
        EXPECT_NE(f->advice.find("cudnn"), std::string::npos);
        ASSERT_EQ(std::ranges::count_if(j.checks, &Check::violated), 1);
        EXPECT_EQ(std::ranges::find_if(j.checks, &Check::violated)->sentence,
                  "fp32 convolutions may not use TF32");
    }
    for (const char* const op : {"aten::addmm", "aten::_addmm_activation"}) {  // cuBLASLt is cuBLAS's
        RunModel m = raw_run(DType::fp32);
        m.ops[0].total.op = op;
        m.ops[0].total.tf32 = 8;
        EXPECT_EQ(find_rule(judge(m, {}, {"tf32:matmul=on,cudnn=off"}), "MPT060"), nullptr) << op;
        EXPECT_TRUE(find_rule(judge(m, {}, {"tf32:matmul=off,cudnn=on"}), "MPT060")) << op;
    }
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

const Check* check_of(const Judgement& j, std::string_view part) {
    const auto at = std::ranges::find_if(
        j.checks, [&](const Check& c) { return c.sentence.find(part) != std::string::npos; });
    return at == j.checks.end() ? nullptr : &*at;
}

TEST(Judge, ProductsThatMaySplitTheirSumsAreChecked) {
    RunModel m = raw_run(DType::bf16);
    m.ranks[0].process.framework = kRawFramework;
    const auto answer = [&m] {
        const Judgement j = judge(m);
        const Check* const check = check_of(j, "parts of a product's sums");
        return check ? std::pair(check->answer, check->evidence)
                     : std::pair(Check::Answer::no, std::string("none"));
    };
    const std::string of = " of " + std::to_string(m.ops[0].total.calls) + " calls";
    EXPECT_EQ(answer(), std::pair(Check::Answer::yes, of.substr(4)));
    m.notes.resize(1);
    m.notes[0].text = kLooseSums;
    m.notes[0].count = 3;
    EXPECT_EQ(answer(), std::pair(Check::Answer::not_observed, "3" + of + " leave it to cuBLAS"));
    m.ops[0].total.split_sums = 2;
    EXPECT_EQ(answer(), std::pair(Check::Answer::no, "2" + of + " add them in 16 bits"));
    m.ops[0].total.dtype = DType::fp32;
    EXPECT_EQ(answer().second, "none");
    m.ops[0].total.dtype = DType::bf16;
    m.ranks[0].process.framework = "torch 2.11.0";
    EXPECT_EQ(answer().second, "none") << "torch does not tell";
}

TEST(Judge, EachFindingOfARawProgramNamesWhatItRestsOn) {
    RunModel m = raw_run(DType::bf16);
    m.ranks[0].process.framework = kRawFramework;
    m.ops[0].total.half_sums = m.ops[0].total.calls;
    m.ops[0].total.depth = 100000;
    m.ops[0].total.emulated = 1;
    m.collectives = {average(3, DType::bf16)};
    const auto basis = [&m](std::string_view rule) {
        const Judgement j = judge(m);
        const Finding* const f = find_rule(j, rule);
        return f ? name_of(f->basis) : std::string_view("no finding");
    };
    EXPECT_EQ(basis("MPT075"), "exact");
    EXPECT_EQ(basis("MPT073"), "inferred");
    EXPECT_EQ(basis("MPT071"), "inferred");
    m.ops[0].total.loc_compared = 1024;
    m.ops[0].total.loc_squares = 1024;
    m.ops[0].total.loc_error_squares = 1;
    EXPECT_EQ(basis("MPT071"), "sampled");
    m.ranks[0].process.framework = "torch 2.11.0";
    EXPECT_EQ(basis("MPT075"), "unknown");
}

}  // namespace
}  // namespace mp::trace::test
