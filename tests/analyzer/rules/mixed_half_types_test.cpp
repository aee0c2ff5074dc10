#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string op(std::string_view name, std::string_view a, std::string_view b) {
    return "call 5:9 torch." + std::string(name) + " op=" + std::string(name) + " args=[{" + std::string(a) +
           " tensor name=a} {" + std::string(b) + " tensor name=b}]\n";
}

constexpr const char* kBf16 = "{bf16 dtype constant=torch.bfloat16 keyword=dtype}";

TEST(MixedHalfTypes, AProductOfBothThrows) {
    EXPECT_THAT(lint("MP117", {python(op("matmul", "fp16", "bf16"))}), ElementsAre("error 5"));
}

TEST(MixedHalfTypes, ASumOfBothIsAWarning) {
    EXPECT_THAT(lint("MP117", {python(op("add", "fp16", "bf16"))}), ElementsAre("warning 5"));
}

TEST(MixedHalfTypes, OneTypeIsSilent) {
    EXPECT_THAT(lint("MP117", {python(op("matmul", "fp16", "fp16"))}), IsEmpty());
}

TEST(MixedHalfTypes, AWidenedOneIsSilent) {
    EXPECT_THAT(lint("MP117", {python(op("add", "fp32", "bf16"))}), IsEmpty());
}

TEST(MixedHalfTypes, AHalfThatIsNotKnownIsSilent) {
    EXPECT_THAT(lint("MP117", {python(op("matmul", "lowp", "bf16"))}), IsEmpty());
}

TEST(MixedHalfTypes, APromotingOpRefusesTheOtherHalf) {
    EXPECT_THAT(lint("MP117", {python(open(kBf16) + op("dot", "fp16", "fp32") + close())}),
                ElementsAre("error 5"));
}

TEST(MixedHalfTypes, ALoweredOpCastsBothAndIsSilent) {
    EXPECT_THAT(lint("MP117", {python(open(kBf16) + op("matmul", "fp16", "bf16") + close())}), IsEmpty());
}

TEST(MixedHalfTypes, ACollectiveOfAnotherTypeThanItsBufferIsAnError) {
    const std::string call =
        "call 4:3 ncclAllReduce args=[{fp16 pointer name=x} {fp16 pointer name=out} "
        "{int32 name=n} {other constant=";
    EXPECT_THAT(lint("MP117", {kernel(call + "ncclBfloat16}]\n")}), ElementsAre("error 4"));
    EXPECT_THAT(lint("MP117", {kernel(call + "ncclHalf}]\n")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
