#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

std::string scaled_by_hand(std::string_view divisor, std::string_view more = "",
                           std::string_view dtype = "fp16") {
    return "unit t.py language=python\n  func 1:5 t.train kind=python\n"
           "    call 2:5-30 torch.optim.SGD kind=constructor args=[{" +
           std::string(dtype) +
           " parameters}] result.name=opt\n"
           "    call 3:5-30 ?.__mul__ kind=op args=[{name=loss} {constant=1024}]\n"
           "    call 3:5-35 ?.backward kind=method args=[{call=1}]\n"
           "    call 5:5-30 ?.div_ kind=method args=[{name=p.grad} {constant=" +
           std::string(divisor) + "}]\n" + std::string(more) +
           "    call 7:5-30 torch.optim.SGD.step kind=method args=[{name=opt call=0}]\n";
}

TEST(StaticLossScale, AConstantScaleWithoutAFiniteTestIsAWarning) {
    EXPECT_THAT(lint("MP213", {scaled_by_hand("1024")}), ElementsAre("warning 3"));
    EXPECT_THAT(
        lint("MP213", {scaled_by_hand("1024", "    call 6:5-30 torch.isfinite args=[{name=norm}]\n")}),
        IsEmpty());
}

TEST(StaticLossScale, AWeightIsNoScaleAndFp32NeedsNone) {
    EXPECT_THAT(lint("MP213", {scaled_by_hand("4")}), IsEmpty());
    EXPECT_THAT(lint("MP213", {scaled_by_hand("1024", "", "fp32")}), IsEmpty());
}

// A scale from a helper, through a virtual method and a function that launches a given kernel.
std::string kernels(std::string_view scale, std::string_view more = "", std::string_view dtype = "fp16") {
    const std::string d(dtype), s(scale);
    return "unit t.cu language=cuda\n"
           "  func 2:5 default_scale returns=fp32\n"
           "    return fp32 constant=" +
           s +
           "\n"
           "  func 10:5 loss kind=kernel params=[{" +
           d +
           " pointer name=g} {fp32 name=scale}]\n"
           "    scaling 12:5-30 g param=0 dtype=" +
           d +
           " factor.dtype=fp32 factor.param=1 stored\n"
           "  func 20:5 adam kind=kernel params=[{" +
           d +
           " pointer name=g} {fp32 name=scale}]\n"
           "    scaling 22:5-30 g param=0 dtype=" +
           d + " factor.dtype=fp32 factor.param=1 divides averages\n" + std::string(more) +
           "  func 30:5 run params=[{pointer name=kernel} {" + d +
           " pointer name=a} {fp32 name=b}]\n"
           "    call 31:5-30 kernel args=[{" +
           d +
           " pointer param=1} {fp32 param=2}]\n"
           "  func 40:5 Adam::step usr=c:Adam.step overrides=[c:Optimizer.step] params=[{fp32 name=scale}]\n"
           "    call 41:5-30 run callee=run args=[{pointer} {" +
           d +
           " pointer} {fp32 param=0}] lambdas=[adam]\n"
           "  func 50:5 train\n"
           "    call 51:5-30 default_scale callee=default_scale\n"
           "    call 52:5-30 run callee=run args=[{pointer} {" +
           d +
           " pointer} "
           "{fp32 call=0 constant=" +
           s +
           "}] lambdas=[loss]\n"
           "    call 53:5-30 Optimizer::step kind=method callee=c:Optimizer.step args=[{pointer} "
           "{fp32 call=0 constant=" +
           s + "}]\n";
}

TEST(StaticLossScale, AConstantIsFollowedToTheKernelsThatUseIt) {
    EXPECT_THAT(lint("MP213", {kernels("128")}), ElementsAre("warning 2"));
    EXPECT_THAT(lint("MP213", {kernels("1")}), IsEmpty());
    EXPECT_THAT(lint("MP213", {kernels("128", "", "bf16")}), IsEmpty());
    EXPECT_THAT(lint("MP213", {kernels("128", "    call 23:5-9 isfinite args=[{fp32}]\n")}), IsEmpty());
    const std::string parser = "  func 70:5 parse\n    call 71:5-9 std::isfinite args=[{fp64}]\n";
    EXPECT_THAT(lint("MP213", {kernels("128") + parser}), ElementsAre("warning 2"));
}

TEST(StaticLossScale, ADivisionAloneIsNoScale) {
    EXPECT_THAT(lint("MP213", {"unit t.cu language=cuda\n"
                               "  func 20:5 mean kind=kernel params=[{fp16 pointer name=x}]\n"
                               "    scaling 22:5-30 x param=0 dtype=fp16 factor.dtype=fp32 "
                               "factor.constant=256 divides averages\n"}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
