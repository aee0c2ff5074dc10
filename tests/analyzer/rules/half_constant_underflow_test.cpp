#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> constant(std::string value, std::string to = "fp16", std::string role = "none") {
    return lint("MP302", {kernel("cast 4:3 fp32->" + to + " source.constant=" + value + " role=" + role)});
}

TEST(HalfConstantUnderflow, WhatRoundsToZeroIsAnError) {
    EXPECT_THAT(constant("1e-08"), ElementsAre("error 4"));
    EXPECT_THAT(constant("-1e-12", "fp16", "added"), ElementsAre("error 4"));
    EXPECT_THAT(constant("2.98e-08"), ElementsAre("error 4"));
    EXPECT_THAT(constant("2.99e-08"), IsEmpty());
}

TEST(HalfConstantUnderflow, SubnormalGuardsAreWarnings) {
    EXPECT_THAT(constant("1e-05", "fp16", "added"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("1e-06", "fp16", "clamp"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("1e-06", "fp16", "multiplier"), IsEmpty());
    EXPECT_THAT(constant("6.2e-05", "fp16", "added"), IsEmpty());
    EXPECT_THAT(constant("0.0001", "fp16", "added"), IsEmpty());
}

TEST(HalfConstantUnderflow, Bf16HasTheRangeOfFloat) {
    EXPECT_THAT(constant("1e-08", "bf16", "added"), IsEmpty());
    EXPECT_THAT(constant("1e-30", "bf16", "added"), IsEmpty());
}

TEST(HalfConstantUnderflow, ZeroAndWideAreSilent) {
    EXPECT_THAT(constant("0", "fp16", "added"), IsEmpty());
    EXPECT_THAT(constant("1e-08", "fp32", "added"), IsEmpty());
}

TEST(HalfConstantUnderflow, NotKnownWhichHalfAndComparisonsAreWarnings) {
    EXPECT_THAT(constant("1e-08", "lowp", "added"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("1e-08", "fp16", "compared"), ElementsAre("warning 4"));
}

TEST(HalfConstantUnderflow, TensorsTakeTheScalarInTheirDtype) {
    const auto add = [](std::string op, std::string dtype) {
        return lint("MP302", {host("call 5:3 at::Tensor::" + op + " kind=method op=" + op + " args=[{" +
                                   dtype + " tensor name=s} {fp64 constant=1e-08}] result.shape=tensor")});
    };
    EXPECT_THAT(add("add", "fp16"), ElementsAre("error 5"));
    EXPECT_THAT(add("clamp_min", "fp16"), ElementsAre("error 5"));
    EXPECT_THAT(add("add", "fp32"), IsEmpty());
    EXPECT_THAT(add("add", "bf16"), IsEmpty());
    // The product is rounded, not the factor.
    EXPECT_THAT(add("mul", "fp16"), IsEmpty());
}

TEST(HalfConstantUnderflow, MessageHasTheThreshold) {
    const auto found = findings("MP302", {kernel("cast 4:3 fp32->fp16 source.constant=1e-08 role=added")});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].message,
              "1e-08 is 0 in fp16 (anything up to 2.98e-08 is): what it guards is unguarded");
}

}  // namespace
}  // namespace mp::lint::test
