// Scalars of 16 bits that feed every update: counters that stop, norms that are far from their twin.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/judge/judge.hpp"
#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;

TensorSum counter(double real, double twin) {
    TensorSum t = tensor_sum(TensorKind::optimizer_state, "fc.weight.step", DType::bf16);
    t.last.elements = t.last.compared = 1;
    t.last.amax = real;
    t.last.twin_amax = twin;
    t.last.error_squares = (twin - real) * (twin - real);
    t.last.twin_squares = twin * twin;
    t.samples = t.meant_to_move = 14;
    t.frozen = t.unmoved = 5;
    t.first_stagnant = Step{256};
    return t;
}

TEST(Judge, MPT041AFrozenCounter) {
    RunModel m = healthy();
    m.tensors = {counter(256, 400), counter(256, 390)};
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT041");
    EXPECT_EQ(j.findings[0].layer, "fc.weight");
    EXPECT_EQ(j.findings[0].step, Step{256});
    EXPECT_THAT(j.findings[0].message, HasSubstr("stands still at 256 where its fp32 twin reaches 400"));
    EXPECT_THAT(j.findings[0].message, HasSubstr("the same holds for 1 other"));
    m.tensors = {counter(256, 258)};
    EXPECT_EQ(text_of(judge(m)), "") << "it lags by a rounding";
    m.tensors = {counter(256, 400)};
    m.tensors[0].frozen = 1;
    EXPECT_EQ(text_of(judge(m)), "") << "one sample";
    m = healthy();
    m.mode = Mode::watch;
    m.tensors = {counter(256, 400)};
    EXPECT_EQ(text_of(judge(m)), "") << "no twin";
}

TEST(Judge, MPT041NamesTheOpThatAddsToACounter) {
    RunModel m = healthy();
    m.tensors = {counter(256, 400)};
    OpSum adds = op_sum("(optimizer)", "aten::add_", Phase::optimizer, DType::bf16, 1, 20);
    adds.total.calls = adds.total.elements = adds.total.compared = 14;
    m.ops.push_back(adds);
    ASSERT_NE(find(judge(m), "MPT041"), nullptr);
    EXPECT_EQ(find(judge(m), "MPT041")->op, "aten::add_");
    EXPECT_EQ(find(judge(m), "MPT041")->source, "train.py:88");
    adds.total.op = "aten::sub_";
    m.ops.push_back(adds);
    EXPECT_EQ(find(judge(m), "MPT041")->op, "") << "one of two";
}

// A program's own counter of steps, resumed at 256: bf16 has no 257.
TEST(Judge, MPT041ACounterOfTheProgram) {
    RunModel m = healthy();
    OpSum s = op_sum("(update)", "aten::add_", Phase::optimizer, DType::bf16, 1, 20);
    s.total.calls = s.total.elements = s.total.compared = s.total.loc_compared = 4;
    s.total.added = s.total.absorbed = 4;
    s.total.amax = s.total.amin = 256, s.total.twin_amax = 260;
    s.total.error_squares = 0.011 * 0.011 * s.total.twin_squares;
    m.ops.push_back(s);
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT041");
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_THAT(j.findings[0].message, HasSubstr("leaves a single value at 256 in every sampled step"));
    m.ops.back().total.absorbed = 3;
    EXPECT_EQ(text_of(judge(m)), "") << "it counts";
    m.ops.back() = s;
    m.ops.back().total.amin = 250;
    EXPECT_EQ(text_of(judge(m)), "") << "a norm and a small number";
    m.ops.back() = s;
    m.ops.back().total.error_squares = 0;
    EXPECT_EQ(text_of(judge(m)), "") << "and one that does not move";
}

// Without a twin: it counted to 256, and has stood there in the sampled steps since.
TEST(Judge, MPT041ACounterThatStopsWithoutATwin) {
    RunModel m = healthy();
    m.mode = Mode::watch;
    OpSum s = op_sum("(optimizer)", "aten::add_", Phase::optimizer, DType::bf16, 1, 20);
    s.total.compared = s.total.loc_compared = 0;
    s.total.calls = s.total.elements = 14;
    s.total.added = 12, s.total.absorbed = 4;
    s.total.amax = 256;
    s.still = 4, s.first_still = Step{256}, s.last_moved = Step{224};
    m.ops.push_back(s);
    const Judgement j = judge(m);
    ASSERT_NE(find(j, "MPT041"), nullptr) << text_of(j);
    EXPECT_EQ(find(j, "MPT041")->severity, Severity::error);
    EXPECT_EQ(find(j, "MPT041")->step, Step{256});
    EXPECT_THAT(find(j, "MPT041")->message,
                HasSubstr("(optimizer) add bf16 adds the same number again and again to a single value that "
                          "stays at 256 in every sampled step from 256 on"));
    m.ops.back().last_moved = Step{288};
    EXPECT_EQ(find(judge(m), "MPT041"), nullptr) << "it counts again, or another one does";
    m.ops.back() = s;
    m.ops.back().still = 2;
    EXPECT_EQ(find(judge(m), "MPT041"), nullptr) << "two samples";
    m.ops.back() = s;
    m.ops.back().ranks = 2;
    EXPECT_EQ(find(judge(m), "MPT041"), nullptr) << "two samples of two ranks";
    m.ops.back() = s;
    m.ops.back().total.phase = Phase::data;
    ASSERT_NE(find(judge(m), "MPT041"), nullptr);
    EXPECT_EQ(find(judge(m), "MPT041")->severity, Severity::warning) << "it may be for a log";
    EXPECT_EQ(find(judge(m), "MPT041")->phase, Phase::data);
    m.ops.back().total.phase = Phase::backward;
    EXPECT_EQ(find(judge(m), "MPT041"), nullptr) << "gradients are added up";
    m.ops.back() = s;
    m.ops.back().total.calls = m.ops.back().total.elements = 17;
    EXPECT_THAT(find(judge(m), "MPT041")->message, HasSubstr("to values that stay as they are"))
        << "the largest value may be of other sums";
    m.ops.back() = s;
    m.mode = Mode::local;
    EXPECT_EQ(find(judge(m), "MPT041"), nullptr) << "there all addends are counted, those of averages too";
}

// A norm of one value, added up in 16 bits, that is off by a tenth in 64 steps.
OpRecord& add_norm(RunModel& m, const char* layer, DType dtype) {
    m.ops.push_back(op_sum(layer, "aten::add_", Phase::optimizer, dtype, 1, 9));
    OpRecord& op = m.ops.back().total;
    op.elements = op.calls = op.compared = op.loc_compared = 64;
    op.twin_squares = 64;
    op.error_squares = 64 * 0.1 * 0.1;
    return op;
}

TEST(Judge, MPT041ANormAddedUpIn16Bits) {
    RunModel m = healthy();
    OpRecord& op = add_norm(m, "(clipping)", DType::bf16);
    const Judgement j = judge(m);
    ASSERT_EQ(j.findings.size(), 1u) << text_of(j);
    EXPECT_EQ(j.findings[0].rule, "MPT041");
    EXPECT_EQ(j.findings[0].severity, Severity::error);
    EXPECT_EQ(j.findings[0].layer, "(clipping)");
    m.tensors[1].last.error_squares = 0.06 * 0.06 * m.tensors[1].last.twin_squares;
    EXPECT_EQ(text_of(judge(m)), "") << "the gradients are as far off";
    m.tensors[1].last.error_squares = 0;
    op.elements = kElements;
    EXPECT_EQ(text_of(judge(m)), "") << "no scalars";
}

TEST(Judge, MPT041ANormOfTheProgram) {
    RunModel m = healthy();
    add_norm(m, "(update)", DType::fp16);
    ASSERT_EQ(judge(m).findings.size(), 1u);
    EXPECT_EQ(judge(m).findings[0].severity, Severity::warning) << "it may be for a log";
    OpSum scaled = op_sum("(update)", "aten::mul_", Phase::optimizer, DType::fp32, 1, 12);
    m.ops.push_back(scaled);
    EXPECT_EQ(judge(m).findings[0].severity, Severity::warning) << "a product that the norm does not reach";
    m.ops.back().total.error_squares = 0.05 * 0.05 * scaled.total.twin_squares;
    EXPECT_EQ(judge(m).findings[0].severity, Severity::error) << "gradients are clipped by it";
    m.ops.back().total.first = 8;
    EXPECT_EQ(judge(m).findings[0].severity, Severity::warning) << "a product before it";
}

}  // namespace
}  // namespace mp::trace
