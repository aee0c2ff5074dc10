#include "tests/analyzer/rules/python_facts.hpp"
#include "tests/analyzer/rules/region_facts.hpp"

namespace mp::lint::test {
namespace {

std::string add(std::string_view target, std::string_view value) {
    return "call 7:9 torch.Tensor.__iadd__ kind=op op=add in_place args=[{" + std::string(target) +
           " tensor name=acc} {" + std::string(value) + " tensor name=loss}]\n";
}

std::string addmm(std::string_view target, std::string_view value) {
    return "call 7:9 at::Tensor::addmm_ kind=method op=addmm in_place args=[{" + std::string(target) +
           " tensor name=x} {" + std::string(value) + " tensor name=a} {" + std::string(value) +
           " tensor name=b}]\n";
}

TEST(InplaceInAutocast, Fp32AddedInPlaceToHalfIsANote) {
    const auto found = findings("MP116", {python(open() + add("bf16", "fp32") + close())});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].severity, Severity::note);
    EXPECT_THAT(found[0].message, HasSubstr("'acc', which is bf16"));
}

TEST(InplaceInAutocast, InALoopItIsAWarning) {
    const std::string blocks =
        "    block to=[1]\n    block to=[{2 condition=x} {3 condition=x when=false}]\n    block to=[1]\n"
        "    block leaves\n";
    const auto in_block = [](std::string call, int block) {
        return call.insert(call.size() - 1, " block=" + std::to_string(block));
    };
    EXPECT_THAT(
        lint("MP116", {python(blocks + open() + in_block(add("bf16", "fp32"), 2) + in_block(close(), 3))}),
        ElementsAre("warning 7"));
}

TEST(InplaceInAutocast, AnFp32DestinationIsSilent) {
    EXPECT_THAT(lint("MP116", {python(open() + add("fp32", "bf16") + close())}), IsEmpty());
}

TEST(InplaceInAutocast, OutsideARegionItIsSilent) {
    EXPECT_THAT(lint("MP116", {python(add("bf16", "fp32"))}), IsEmpty());
}

TEST(InplaceInAutocast, AValueOfUnknownDtypeIsSilent) {
    EXPECT_THAT(lint("MP116", {python(open() + add("bf16", "unknown") + close())}), IsEmpty());
}

TEST(InplaceInAutocast, AnInPlaceMatmulOnMixedInputsIsAWarning) {
    EXPECT_THAT(lint("MP116", {step(), inner(addmm("fp32", "fp16"))}), ElementsAre("warning 7"));
}

TEST(InplaceInAutocast, AnInPlaceMatmulOnOneDtypeIsSilent) {
    EXPECT_THAT(lint("MP116", {step(), inner(addmm("fp16", "fp16"))}), IsEmpty());
}

TEST(InplaceInAutocast, ReluInPlaceIsSilent) {
    EXPECT_THAT(lint("MP116", {python(open() +
                                      "call 7:9 torch.Tensor.relu_ kind=method op=relu in_place "
                                      "args=[{bf16 tensor name=x}]\n" +
                                      close())}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
