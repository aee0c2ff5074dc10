#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

TEST(OptimizerStepSkipsScaler, DirectStepAfterAScaledBackwardIsAnError) {
    EXPECT_THAT(
        lint("MP204", {training(scaled_backward(4) + on_optimizer(5, "step") + on_scaler(6, "update"))}),
        ElementsAre("error 5"));
    EXPECT_THAT(lint("MP204", {training(scaled_backward(4) + on_scaler(5, "step") + on_scaler(6, "update"))}),
                IsEmpty());
}

TEST(OptimizerStepSkipsScaler, DividedGradientsMayBeSteppedByHandIfTheyAreFinite) {
    const std::string calls = scaled_backward(4) + on_scaler(5, "unscale_") + on_optimizer(7, "step");
    EXPECT_THAT(lint("MP204", {training(calls)}), ElementsAre("warning 7"));
    EXPECT_THAT(lint("MP204", {training(calls + "    call 6:9-19 torch.isfinite op=isfinite args=[{tensor}] "
                                                "block=2\n")}),
                IsEmpty());
}

TEST(OptimizerStepSkipsScaler, AStepThatABranchSkipsAfterUnscaleIsSilent) {
    const std::string flow =
        "    block to=[2]\n    block to=[2 3]\n    block to=[4 5]\n    block leaves\n    block to=[1]\n    "
        "block "
        "to=[1]\n";
    EXPECT_THAT(
        lint("MP204",
             {training(scaled_backward(4) + on_scaler(5, "unscale_") + on_optimizer(7, "step", 4), flow)}),
        IsEmpty());
}

TEST(OptimizerStepSkipsScaler, TheOtherBranchOfTheSameConditionIsSilent) {
    const auto fork = [](std::string_view first, std::string_view second) {
        return "    block to=[{4" + std::string(first) + "} {5" + std::string(first) + "}]\n" +
               "    block to=[6]\n    block to=[6]\n    block to=[{7" + std::string(second) + "} {8" +
               std::string(second) + "}]\n    block to=[1]\n    block to=[1]\n";
    };
    const std::string calls = scaled_backward(4, 4) + plain_backward(5, 5) + on_scaler(6, "step", 7) +
                              on_scaler(6, "update", 7) + on_optimizer(7, "step", 8);
    const std::string known =
        "    block to=[{4 condition=amp} {5 condition=amp when=false}]\n    block to=[6]\n"
        "    block to=[6]\n    block to=[{7 condition=amp} {8 condition=amp when=false}]\n"
        "    block to=[1]\n    block to=[1]\n";
    EXPECT_THAT(lint("MP204", {training(calls, known)}), IsEmpty());
    EXPECT_THAT(lint("MP204", {training(calls, fork("", ""))}), IsEmpty());
}

TEST(OptimizerStepSkipsScaler, WhatALoopBeforeHasScaledIsOver) {
    // Other code consumes the scaled loss; the loop after it trains without a scaler.
    EXPECT_THAT(lint("MP204", {training(scale_line(4) + on_scaler(5, "step") + on_scaler(6, "update") +
                                        plain_backward(7, 3) + on_optimizer(8, "step", 3))}),
                IsEmpty());
}

TEST(OptimizerStepSkipsScaler, TheStepIsRewritten) {
    const Findings found = findings(
        "MP204", {training(scaled_backward(4) +
                           "    call 5:9-19 torch.optim.AdamW.step kind=method args=[{object name=opt}] "
                           "block=2\n")});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_EQ(found[0].edits[0].text, "scaler.step(opt)");
}

}  // namespace
}  // namespace mp::lint::test
