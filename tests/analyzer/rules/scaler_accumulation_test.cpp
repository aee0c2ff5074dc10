#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

// 2: backward ...; if k (unknown): 4; 5: the rest -> loop
const std::string kMaybe = "    block to=[4 5]\n    block to=[5]\n    block to=[1]\n";

TEST(ScalerAccumulation, UnscalePerMicroBatchIsAnError) {
    EXPECT_THAT(lint("MP206", {training(scaled_backward(4) + on_scaler(5, "unscale_") +
                                            on_scaler(6, "step", 4) + on_scaler(7, "update", 4),
                                        kMaybe)}),
                ElementsAre("error 5"));
}

TEST(ScalerAccumulation, AListOfOptimizersIsNoSecondTime) {
    EXPECT_THAT(lint("MP206", {training(on_scaler(5, "unscale_"))}), IsEmpty());
}

TEST(ScalerAccumulation, AllOfItUnderTheConditionIsSilent) {
    EXPECT_THAT(lint("MP206", {training(scaled_backward(4) + on_scaler(5, "unscale_", 4) + clip_line(6, 4) +
                                            on_scaler(6, "step", 4) + on_scaler(7, "update", 4),
                                        kMaybe)}),
                IsEmpty());
}

TEST(ScalerAccumulation, TwoGuardsThatMayBeTwinsProveNothing) {
    EXPECT_THAT(lint("MP206", {training(scaled_backward(4) + on_scaler(5, "unscale_", 4) +
                                            on_scaler(6, "step", 6) + on_scaler(7, "update", 6),
                                        "    block to=[4 5]\n    block to=[5]\n    block to=[6 7]\n"
                                        "    block to=[7]\n    block to=[1]\n")}),
                IsEmpty());
}

TEST(ScalerAccumulation, UpdatePerMicroBatchIsAnError) {
    EXPECT_THAT(
        lint("MP206",
             {training(scaled_backward(4) + on_scaler(6, "step", 4) + on_scaler(7, "update", 5), kMaybe)}),
        ElementsAre("error 7"));
}

TEST(ScalerAccumulation, GradientsThatAreZeroedDoNotAccumulate) {
    EXPECT_THAT(lint("MP206", {training(on_optimizer(3, "zero_grad") + scaled_backward(4) +
                                            on_scaler(6, "step", 4) + on_scaler(7, "update", 5),
                                        kMaybe)}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
