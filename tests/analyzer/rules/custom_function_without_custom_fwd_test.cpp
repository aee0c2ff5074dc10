#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string method(std::string_view name, int line, std::string_view annotations, std::string_view facts) {
    return "  func " + std::to_string(line) + ":9 train.MM." + std::string(name) +
           " kind=python parent_class=train.MM bases=[torch.autograd.Function] annotations=[" +
           std::string(annotations) + "] params=[{name=ctx} {name=a} {name=b}]\n" + std::string(facts);
}

constexpr const char* kForward =
    "    call 21:9 ?.save_for_backward kind=method args=[{other name=ctx} {other name=a}]\n"
    "    call 22:9 torch.matmul op=matmul args=[{other name=a} {other name=b}]\n";
constexpr const char* kBackward =
    "    call 31:9 torch.matmul op=matmul args=[{other name=g} {other name=b}]\n";
constexpr const char* kFwd = "\"torch.amp.custom_fwd(device_type='cuda')\"";
constexpr const char* kBwd = "\"torch.amp.custom_bwd(device_type='cuda')\"";

std::string function(std::string_view fwd = "", std::string_view bwd = "",
                     std::string_view forward = kForward, std::string_view backward = kBackward) {
    return "unit mm.py language=python\n" + method("forward", 20, fwd, forward) +
           method("backward", 30, bwd, backward);
}

constexpr const char* kApply = "call 4:9 train.MM.apply kind=method args=[{other name=x} {other name=w}]\n";

TEST(CustomFunctionWithoutCustomFwd, ProductsOnSavedTensorsInARegionAreAWarning) {
    EXPECT_THAT(lint("MP114", {python(open() + kApply + close()), function()}), ElementsAre("warning 20"));
}

TEST(CustomFunctionWithoutCustomFwd, OutsideARegionItIsSilent) {
    EXPECT_THAT(lint("MP114", {python(kApply), function()}), IsEmpty());
}

TEST(CustomFunctionWithoutCustomFwd, DecoratedItIsSilent) {
    EXPECT_THAT(lint("MP114", {python(open() + kApply + close()), function(kFwd, kBwd)}), IsEmpty());
}

TEST(CustomFunctionWithoutCustomFwd, AMissingCustomBwdIsAWarning) {
    EXPECT_THAT(lint("MP114", {function(kFwd, "")}), ElementsAre("warning 30"));
}

TEST(CustomFunctionWithoutCustomFwd, CustomFwdBesideSetupContextIsAWarning) {
    EXPECT_THAT(lint("MP114", {function(kFwd, kBwd) + method("setup_context", 40, "", "")}),
                ElementsAre("warning 20"));
}

TEST(CustomFunctionWithoutCustomFwd, ElementwiseFunctionsAreSilent) {
    EXPECT_THAT(lint("MP114", {python(open() + kApply + close()),
                               function("", "", "    call 22:9 torch.exp op=exp args=[{other name=a}]\n",
                                        "    call 31:9 torch.mul op=mul args=[{other name=g}]\n")}),
                IsEmpty());
}

TEST(CustomFunctionWithoutCustomFwd, AFunctionThatCastsItsInputsIsSilent) {
    EXPECT_THAT(lint("MP114", {python(open() + kApply + close()),
                               function("", "",
                                        std::string("    call 20:9 ?.float kind=method op=to "
                                                    "args=[{other name=a}]\n") +
                                            kForward)}),
                IsEmpty());
}

TEST(CustomFunctionWithoutCustomFwd, ACustomOpIsAnExtension) {
    EXPECT_THAT(
        lint("MP114", {python(open() + kApply + close()),
                       function("", "", "    call 22:9 torch.ops.mine.grid args=[{other name=a}]\n", "")}),
        ElementsAre("note 20"));
}

}  // namespace
}  // namespace mp::lint::test
