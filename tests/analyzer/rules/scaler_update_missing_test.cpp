#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

TEST(ScalerUpdateMissing, StepAfterStepWithoutUpdateIsAnError) {
    EXPECT_THAT(lint("MP205", {training(scaled_backward(4) + on_scaler(5, "step"))}), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP205", {training(scaled_backward(4) + on_scaler(5, "step") + on_scaler(6, "update"))}),
                IsEmpty());
}

TEST(ScalerUpdateMissing, ContinuePastTheUpdateIsAnError) {
    // 2: step, then either 4 (update) or back to the loop.
    EXPECT_THAT(lint("MP205", {training(made_scaler() + scaled_backward(4) + on_scaler(5, "step") +
                                            on_scaler(7, "update", 4),
                                        "    block to=[1 4]\n    block to=[1]\n")}),
                ElementsAre("error 5"));
}

TEST(ScalerUpdateMissing, AStepAndAnUpdateUnderLikeGuardsAreSilent) {
    // if k: step; if k: update
    EXPECT_THAT(lint("MP205", {training(made_scaler() + scaled_backward(4) + on_scaler(5, "step", 4) +
                                            on_scaler(7, "update", 6),
                                        "    block to=[4 5]\n    block to=[5]\n    block to=[6 7]\n"
                                        "    block to=[7]\n    block to=[1]\n")}),
                IsEmpty());
}

TEST(ScalerUpdateMissing, AnExceptionIsNoBranch) {
    EXPECT_THAT(lint("MP205", {training(made_scaler() + scaled_backward(4) + on_scaler(5, "step") +
                                            on_scaler(7, "update", 4),
                                        "    block to=[{1 raises} {4}]\n    block to=[1]\n")}),
                IsEmpty());
}

TEST(ScalerUpdateMissing, OneUpdateForTwoOptimizersIsSilent) {
    const std::string second =
        call_line(6, "torch.amp.GradScaler.step kind=method args=[{name=scaler} {name=opt_g}] block=2");
    EXPECT_THAT(lint("MP205",
                     {training(scaled_backward(4) + on_scaler(5, "step") + second + on_scaler(7, "update"))}),
                IsEmpty());
}

TEST(ScalerUpdateMissing, AListOfOptimizersIsNoSecondStep) {
    EXPECT_THAT(lint("MP205", {training(on_scaler(5, "step"))}), IsEmpty());
}

TEST(ScalerUpdateMissing, UpdateBeforeStepIsAnError) {
    EXPECT_THAT(lint("MP205", {training(scaled_backward(4) + on_scaler(5, "update") + on_scaler(6, "step"))}),
                ElementsAre("error 5"));
}

std::string helper(bool updates) {
    return "unit t.py language=python\n"
           "  func 1:5 t.train kind=python\n"
           "    block to=[1]\n    block to=[1 2]\n    block leaves\n"
           "    call 2:5-30 torch.amp.GradScaler kind=constructor result.name=scaler\n"
           "    call 3:5-30 t.step callee=t.step args=[{name=opt} {name=scaler call=0}] block=1\n"
           "  func 9:5 t.step kind=python params=[{name=o} {name=s}]\n"
           "    call 10:5-20 ?.scale kind=method args=[{name=s param=1} {name=loss}]\n"
           "    call 10:5-30 ?.backward kind=method args=[{call=0}]\n"
           "    call 11:5-30 ?.step kind=method args=[{name=s param=1} {name=o param=0}]\n" +
           std::string(updates ? "    call 12:5-30 ?.update kind=method args=[{name=s param=1}]\n" : "");
}

TEST(ScalerUpdateMissing, TheLoopMayBeInTheCaller) {
    EXPECT_THAT(lint("MP205", {helper(false)}), ElementsAre("error 11"));
    EXPECT_THAT(lint("MP205", {helper(true)}), IsEmpty());
}

TEST(ScalerUpdateMissing, AScalerWithoutUpdateUpdatesInItsStep) {
    const std::string own =
        "unit t.py language=python\n"
        "  func 1:5 t.train kind=python\n"
        "    block to=[1]\n    block to=[1 2]\n    block leaves\n"
        "    call 3:5-20 t.S.scale kind=method args=[{name=s} {name=loss}] block=1\n"
        "    call 3:5-30 ?.backward kind=method args=[{call=0}] block=1\n"
        "    call 4:5-30 t.S.unscale_ kind=method args=[{name=s} {name=opt}] block=1\n"
        "    call 5:5-30 t.S.step kind=method args=[{name=s} {name=opt}] block=1\n";
    EXPECT_THAT(lint("MP205", {own}), IsEmpty());
}

TEST(ScalerUpdateMissing, AnotherMethodOfTheClassMayUpdate) {
    const std::string step =
        "unit t.py language=python\n"
        "  func 1:5 t.T.fit kind=python parent_class=t.T params=[{name=self}]\n"
        "    block to=[1]\n    block to=[1 2]\n    block leaves\n"
        "    call 2:5-30 ?.backward kind=method args=[{name=loss}] block=1\n"
        "    call 3:5-30 torch.amp.GradScaler.step kind=method args=[{name=self.scaler} "
        "{name=self.opt}] block=1\n";
    EXPECT_THAT(lint("MP205", {step}), ElementsAre("error 3"));
    EXPECT_THAT(
        lint("MP205", {step + "  func 9:5 t.T.after kind=python parent_class=t.T params=[{name=self}]\n"
                              "    call 10:5-30 torch.amp.GradScaler.update kind=method "
                              "args=[{name=self.scaler}]\n"}),
        IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
