#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> set(std::string name, std::string value) {
    return lint("MP408", {python("    setting 3:1-60 torch.backends.cuda.matmul." + name +
                                 " value.constant=" + value + "\n")});
}

TEST(ReducedPrecisionReduction, AccumulationIsAWarningJoiningANote) {
    EXPECT_THAT(set("allow_fp16_accumulation", "true"), ElementsAre("warning 3"));
    EXPECT_THAT(set("allow_fp16_reduced_precision_reduction", "true"), ElementsAre("note 3"));
    EXPECT_THAT(set("allow_bf16_reduced_precision_reduction", "true"), ElementsAre("note 3"));
}

TEST(ReducedPrecisionReduction, OffAndUnknownAreSilent) {
    EXPECT_THAT(set("allow_fp16_accumulation", "false"), IsEmpty());
    EXPECT_THAT(lint("MP408", {python("    setting 3:1 torch.backends.cuda.matmul."
                                      "allow_fp16_accumulation value.name=fast\n")}),
                IsEmpty());
    EXPECT_THAT(set("allow_tf32", "true"), IsEmpty());
}

TEST(ReducedPrecisionReduction, CppSetsItOnTheContext) {
    const auto call = [](std::string value) {
        return lint("MP408", {host("    call 5:3 at::Context::setAllowFP16ReductionCuBLAS "
                                   "kind=method args=[{object} {bool constant=" +
                                   value + "}]\n")});
    };
    EXPECT_THAT(call("true"), ElementsAre("note 5"));
    EXPECT_THAT(call("false"), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
