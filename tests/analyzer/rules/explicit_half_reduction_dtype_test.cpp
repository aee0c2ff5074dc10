#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string softmax(std::string dtype) {
    return python(
        "    call 5:3 torch.nn.functional.softmax op=softmax args=[{name=s} {constant=-1} "
        "{keyword=dtype " +
        dtype + " span=5:30-49}] result.shape=tensor\n");
}

std::string sum(std::string input, std::string dtype) {
    return python("    call 5:3 torch.sum op=sum args=[{" + input + " tensor name=s} {keyword=dtype " +
                  dtype + " dtype constant=torch." + dtype + "}] result.shape=tensor\n");
}

TEST(ExplicitHalfReductionDtype, RangeAndCountsDecide) {
    EXPECT_THAT(lint("MP411", {sum("fp32", "fp16")}), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP411", {sum("bool", "bf16")}), ElementsAre("error 5")) << "a count keeps 8 bits";
    EXPECT_THAT(lint("MP411", {sum("fp32", "bf16")}), ElementsAre("note 5")) << "added in fp32, rounded once";
}

TEST(ExplicitHalfReductionDtype, AResultThatStaysInRangeIsANote) {
    EXPECT_THAT(lint("MP411", {softmax("fp16 dtype constant=torch.float16")}), ElementsAre("note 5"));
    EXPECT_THAT(lint("MP411", {softmax("bf16 dtype constant=torch.bfloat16")}), ElementsAre("note 5"));
    std::string half = softmax("fp16 dtype constant=torch.float16");
    half.replace(half.find("{name=s}"), 8, "{fp16 tensor name=s}");
    EXPECT_THAT(lint("MP411", {half}), IsEmpty()) << "it has that dtype anyway";
    EXPECT_THAT(lint("MP411", {softmax("fp32 dtype constant=torch.float32")}), IsEmpty());
    EXPECT_THAT(lint("MP411", {softmax("int64 dtype constant=torch.int64")}), IsEmpty());
}

TEST(ExplicitHalfReductionDtype, ADtypeOfAnotherTensorIsSilent) {
    EXPECT_THAT(lint("MP411", {softmax("fp16 dtype name=x.dtype")}), IsEmpty());
}

TEST(ExplicitHalfReductionDtype, OtherOpsMayAskForHalf) {
    EXPECT_THAT(lint("MP411", {python("    call 5:3 torch.zeros args=[{constant=3} {keyword=dtype "
                                      "fp16 dtype constant=torch.float16}]\n"
                                      "    call 6:3 torch.Tensor.add kind=method op=add args=[{fp16 "
                                      "tensor name=x} {fp16 dtype constant=torch.float16}]\n")}),
                IsEmpty());
}

TEST(ExplicitHalfReductionDtype, FixAsksForFp32) {
    const auto found = findings("MP411", {softmax("fp16 dtype constant=torch.float16")});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_EQ(found[0].edits[0].text, "dtype=torch.float32");
    EXPECT_FALSE(found[0].safe_edits);
}

TEST(ExplicitHalfReductionDtype, CppNamesTheDtypeAsAConstant) {
    const auto sum = [](std::string constant) {
        return lint("MP411", {host("    call 5:3 at::sum op=sum args=[{tensor name=x} {options "
                                   "constant=" +
                                   constant + "}] result.shape=tensor\n")});
    };
    EXPECT_THAT(sum("c10::kHalf"), ElementsAre("error 5"));
    EXPECT_THAT(sum("c10::kFloat"), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
