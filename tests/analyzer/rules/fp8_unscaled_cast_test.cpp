#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string cast(std::string value, std::string to = "e4m3") {
    return "    call 5:3 torch.Tensor.to kind=method args=[{" + value + "} {" + to +
           " dtype constant=torch.float8}] result.dtype=" + to + " result.shape=tensor\n";
}

std::string made_by(std::string op) {
    return "    call 3:3 torch.Tensor." + op + " kind=method op=" + op +
           " args=[{tensor name=x} {tensor name=w}] result.shape=tensor\n";
}

TEST(Fp8UnscaledCast, WhatWasNeitherScaledNorClamped) {
    const auto after = [](std::string op) {
        return lint("MP307", {python(made_by(op) + cast("tensor call=0"))});
    };
    EXPECT_THAT(after("matmul"), ElementsAre("error 5"));
    for (const std::string op : {"mul", "div", "clamp", "softmax"}) EXPECT_THAT(after(op), IsEmpty()) << op;
}

TEST(Fp8UnscaledCast, MovesBetweenDoNotHideTheOrigin) {
    EXPECT_THAT(lint("MP307", {python(made_by("mul") +
                                      "    call 4:3 torch.Tensor.contiguous kind=method "
                                      "op=contiguous args=[{tensor call=0}] result.shape=tensor\n" +
                                      cast("tensor call=1"))}),
                IsEmpty());
}

TEST(Fp8UnscaledCast, AParameterIsAWarningAnythingElseUnknownIsSilent) {
    EXPECT_THAT(lint("MP307", {python(cast("tensor name=x param=0", "e5m2"))}), ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP307", {python(cast("other name=self.w"))}), IsEmpty());
    EXPECT_THAT(
        lint("MP307", {python("    call 3:3 pkg.scaled args=[{tensor name=x}]\n" + cast("other call=0"))}),
        IsEmpty());
}

TEST(Fp8UnscaledCast, ScalingInPlaceCounts) {
    EXPECT_THAT(lint("MP307", {python("    call 3:3 torch.Tensor.clamp_ kind=method op=clamp "
                                      "args=[{tensor name=x param=0} {constant=-448}] in_place\n" +
                                      cast("tensor name=x param=0"))}),
                IsEmpty());
}

TEST(Fp8UnscaledCast, OtherCastsAndFp8InputsAreSilent) {
    EXPECT_THAT(lint("MP307", {python(cast("tensor name=x param=0", "fp16"))}), IsEmpty());
    EXPECT_THAT(lint("MP307", {python(cast("e5m2 tensor name=x param=0"))}), IsEmpty());
}

TEST(Fp8UnscaledCast, CudaMustSaturate) {
    const std::string cast = "cast 4:3 fp32->e4m3 form=intrinsic source.dtype=fp32 source.name=v ";
    EXPECT_THAT(lint("MP307", {kernel(cast + "unsaturated")}), ElementsAre("error 4"));
    EXPECT_THAT(lint("MP307", {kernel(cast)}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
