#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> constant(std::string value, std::string to = "fp16",
                                  std::string role = "none") {
    return lint("MP301",
                {kernel("cast 4:3 fp32->" + to + " source.constant=" + value + " role=" + role)});
}

TEST(HalfConstantOverflow, TheBoundIsExactRounding) {
    EXPECT_THAT(constant("65519.99"), IsEmpty());
    EXPECT_THAT(constant("65520"), ElementsAre("error 4"));
    EXPECT_THAT(constant("-65520"), ElementsAre("error 4"));
    EXPECT_THAT(constant("-1e+09"), ElementsAre("error 4"));
    EXPECT_THAT(constant("70000"), ElementsAre("error 4"));
    EXPECT_THAT(constant("-10000"), IsEmpty());
}

TEST(HalfConstantOverflow, FloatMaxLeavesBf16) {
    EXPECT_THAT(constant("3.4028234663852886e+38", "bf16"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("-1e+30", "bf16"), IsEmpty());
    EXPECT_THAT(constant("1e+09", "bf16"), IsEmpty());
}

TEST(HalfConstantOverflow, Fp8HasNoInfinity) {
    EXPECT_THAT(constant("448", "e4m3"), IsEmpty());
    EXPECT_THAT(constant("500", "e4m3"), ElementsAre("error 4"));
    EXPECT_THAT(constant("70000", "e5m2"), ElementsAre("error 4"));
}

TEST(HalfConstantOverflow, RolesThatInfServesAsWellAreNotes) {
    EXPECT_THAT(constant("-1e+20", "fp16", "max_identity"), ElementsAre("note 4"));
    EXPECT_THAT(constant("1e+20", "fp16", "compared"), ElementsAre("note 4"));
    EXPECT_THAT(constant("1e+20", "fp16", "clamp"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("-1e+20", "fp16", "mask_fill"), ElementsAre("error 4"));
}

TEST(HalfConstantOverflow, InfinityItselfAndNonNumbersAreSilent) {
    for (const std::string value : {"inf", "-inf", "nan", "nullptr", "CUDA_R_16F", "true"})
        EXPECT_THAT(constant(value), IsEmpty()) << value;
}

TEST(HalfConstantOverflow, NotKnownWhichHalfIsAWarning) {
    EXPECT_THAT(constant("1e+09", "lowp"), ElementsAre("warning 4"));
}

TEST(HalfConstantOverflow, IntegerConstantsCount) {
    EXPECT_THAT(lint("MP301", {kernel("cast 4:3 int32->fp16 source.constant=70000")}),
                ElementsAre("error 4"));
}

TEST(HalfConstantOverflow, WideDestinationsAreSilent) {
    EXPECT_THAT(constant("1e+09", "fp32"), IsEmpty());
}

TEST(HalfConstantOverflow, TensorOpsTakeTheDtypeOfTheirTensor) {
    const auto fill = [](std::string dtype, std::string value) {
        return lint("MP301",
                    {host("call 5:3 at::Tensor::masked_fill kind=method op=masked_fill args=[{" +
                          dtype + " tensor name=s} {bool tensor name=m} {fp64 constant=" + value +
                          "}] result.shape=tensor")});
    };
    EXPECT_THAT(fill("fp16", "-1e+09"), ElementsAre("error 5"));
    EXPECT_THAT(fill("fp16", "-10000"), IsEmpty());
    EXPECT_THAT(fill("lowp", "-1e+09"), ElementsAre("warning 5"));
    EXPECT_THAT(fill("fp32", "-1e+09"), IsEmpty());
    EXPECT_THAT(fill("unknown", "-1e+09"), IsEmpty());
}

TEST(HalfConstantOverflow, MessageSaysWhatItBecomes) {
    const auto found = findings("MP301", {kernel("cast 4:3 fp32->fp16 source.constant=-1e+09")});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].message, "-1e+09 does not fit fp16 (largest value 65504): it becomes -inf");
}

}  // namespace
}  // namespace mp::lint::test
