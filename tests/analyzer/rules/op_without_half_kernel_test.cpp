#include "analyzer/rules/rule.hpp"
#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::string op(std::string_view name, std::string_view dtype, std::string_view more = "") {
    return "unit t.py language=python\n  func 1:5 t.step kind=python\n"
           "    call 2:5-30 torch." +
           std::string(name) + " op=" + std::string(name) + " args=[{" + std::string(dtype) +
           " tensor name=x}" + std::string(more) + "]\n";
}

TEST(OpWithoutHalfKernel, SolversRefuseBoth) {
    EXPECT_THAT(lint("MP122", {op("linalg_inv", "fp16")}), ElementsAre("error 2"));
    EXPECT_THAT(lint("MP122", {op("linalg_inv", "bf16")}), ElementsAre("error 2"));
    EXPECT_THAT(lint("MP122", {op("linalg_inv", "lowp")}), ElementsAre("warning 2"));
    EXPECT_THAT(lint("MP122", {op("linalg_inv", "fp32")}), IsEmpty());
    EXPECT_THAT(lint("MP122", {op("linalg_inv", "unknown")}), IsEmpty());
}

TEST(OpWithoutHalfKernel, TransformsRefuseBf16Alone) {
    EXPECT_THAT(lint("MP122", {op("fft_rfft", "bf16")}), ElementsAre("error 2"));
    EXPECT_THAT(lint("MP122", {op("fft_rfft", "fp16")}), IsEmpty());
    EXPECT_THAT(lint("MP122", {op("fft_rfft", "lowp")}), IsEmpty());
}

TEST(OpWithoutHalfKernel, ACallThatAsksForFp32AndOpsWithKernelsAreSilent) {
    EXPECT_THAT(lint("MP122", {op("linalg_inv", "fp16", " {fp32 dtype keyword=dtype}")}), IsEmpty());
    EXPECT_THAT(lint("MP122", {op("softmax", "fp16")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
