#include "runtime/judge/floors.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/runtime/judge/models.hpp"

namespace mp::trace {
namespace {

TEST(Floors, NamesLoseTheirFramework) {
    EXPECT_EQ(base_name("aten::addmm"), "addmm");
    EXPECT_EQ(base_name("aten::_softmax"), "softmax");
    EXPECT_EQ(base_name("aten::native_layer_norm"), "layer_norm");
    EXPECT_EQ(base_name("aten::add_.Tensor"), "add");
    EXPECT_EQ(base_name("aten::gelu_backward"), "gelu");
    EXPECT_EQ(base_name("_"), "_");
    EXPECT_TRUE(is_in_place_name("aten::add_"));
    EXPECT_FALSE(is_in_place_name("aten::__and__"));
    EXPECT_TRUE(is_backward_op("aten::_softmax_backward_data"));
}

TEST(Floors, OneRoundingCostsOne) {
    for (const char* op : {"aten::addmm", "aten::mm", "aten::mul", "aten::_to_copy", "unheard::of"})
        EXPECT_EQ(expected_phi(op), 1) << op;
    for (const char* op : {"aten::_softmax", "aten::native_layer_norm", "aten::gelu"})
        EXPECT_NEAR(expected_phi(op), std::sqrt(2.0), 1e-12) << op;
    for (const char* op : {"aten::gelu_backward", "aten::native_layer_norm_backward",
                           "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::linalg_cross"})
        EXPECT_GE(expected_phi(op), std::sqrt(3.0)) << op;
}

// x.scatter(1, i, -6e4) and x[mask] = -6e4 write a value that the caller chose, as masked_fill does. arange computes
// its values, so 65504 in fp16 is only a position near the end of the range.
TEST(Floors, WritingAConstantIsNotComputingOne) {
    for (const char* op : {"aten::masked_fill_", "aten::clamp", "aten::nan_to_num", "aten::scatter",
                           "aten::index_put_", "aten::_index_put_impl_", "aten::lift_fresh", "aten::zero_"})
        EXPECT_TRUE(is_fill(op)) << op;
    for (const char* op : {"aten::arange", "aten::scatter_add", "aten::mul"}) EXPECT_FALSE(is_fill(op)) << op;
    EXPECT_TRUE(may_add_by_index("aten::_index_put_impl_"));
    EXPECT_FALSE(may_add_by_index("aten::masked_fill_"));
}

TEST(Floors, MeasuresComeInFloors) {
    const OpSum s = test::op_sum("l", "aten::addmm", Phase::forward, DType::bf16, 3);
    EXPECT_NEAR(introduced_phi(s.total), 3, 1e-9);
    EXPECT_NEAR(total_phi(s.total), 3 * std::sqrt(2.0), 1e-9);
    EXPECT_NEAR(inherited_phi(s.total), 3, 1e-9);
    OpRecord none = s.total;
    none.loc_compared = none.compared = 0;
    EXPECT_EQ(introduced_phi(none), -1);
    EXPECT_EQ(total_phi(none), -1);
}

TEST(Floors, AZeroReferenceIsNoErrorOrAnInfiniteOne) {
    EXPECT_EQ(relative(0, 0), 0);
    EXPECT_TRUE(std::isinf(relative(1, 0)));
    EXPECT_EQ(relative(-1, 1), 0) << "the difference of two sums";
}

TEST(Floors, ANaNIsTheWorstError) {
    for (const double squares : {1.0, 0.0, std::nan(""), HUGE_VAL})
        EXPECT_EQ(relative(std::nan(""), squares), HUGE_VAL) << squares;
    EXPECT_EQ(relative(1, std::nan("")), HUGE_VAL);
    EXPECT_EQ(relative(HUGE_VAL, HUGE_VAL), HUGE_VAL);
    OpRecord op = test::op_sum("l", "aten::addmm", Phase::forward, DType::bf16, 3).total;
    op.loc_error_squares = op.error_squares = op.prop_error_squares = std::nan("");
    EXPECT_EQ(introduced_phi(op), HUGE_VAL);
    EXPECT_EQ(total_phi(op), HUGE_VAL);
    EXPECT_EQ(inherited_phi(op), HUGE_VAL);
}

TEST(Floors, SmallTensorsAreGivenRoom) {
    EXPECT_EQ(widened(1.5, 1024), 1.5);
    EXPECT_DOUBLE_EQ(widened(1.5, 64), 1.875);
    EXPECT_EQ(widened(1.5, 0), 1.5);
}

}  // namespace
}  // namespace mp::trace
