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
    EXPECT_THAT(lint("MP213", {scaled_by_hand(
                                  "1024", "    call 6:5-30 torch.isfinite args=[{name=norm}]\n")}),
                IsEmpty());
}

TEST(StaticLossScale, AWeightIsNoScaleAndFp32NeedsNone) {
    EXPECT_THAT(lint("MP213", {scaled_by_hand("4")}), IsEmpty());
    EXPECT_THAT(lint("MP213", {scaled_by_hand("1024", "", "fp32")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
