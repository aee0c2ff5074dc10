#include "instrument/cuda/ranges.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>

#include "instrument/cuda/range_names.hpp"

namespace mp::raw {
namespace {

TEST(RangeNames, Steps) {
    EXPECT_EQ(step_of_range("Train step 3", ""), 3);
    EXPECT_EQ(step_of_range("training_step_12", ""), 12);
    EXPECT_EQ(step_of_range("ITERATION: 7/100", ""), 7);
    EXPECT_EQ(step_of_range("iter 0", ""), 0);
    for (const char* const name : {"validation step 3", "micro_step 1", "Layer 3", "step", "step 3x", "steps",
                                   "", "generate step 4", "data batch 2", "step 99999999999999999999"})
        EXPECT_EQ(step_of_range(name, ""), -1) << name;
}

TEST(RangeNames, APatternReplacesTheUsualNames) {
    EXPECT_EQ(step_of_range("update #5", "update #*"), 5);
    EXPECT_EQ(step_of_range("update 5 of 8", "update * of 8"), 5);
    EXPECT_EQ(step_of_range("update 5 of 8", "update **"), 5);
    EXPECT_EQ(step_of_range("Train step 3", "update *"), -1);
}

TEST(RangeNames, PhasesAndLayers) {
    EXPECT_EQ(phase_of_range("gpt2_backward_and_reduce"), Phase::backward);
    EXPECT_EQ(phase_of_range("Forward"), Phase::forward);
    EXPECT_EQ(phase_of_range("gpt2_update"), Phase::optimizer);
    EXPECT_EQ(phase_of_range("attention"), Phase::unknown);
    EXPECT_TRUE(is_numbered_layer("Layer 11"));
    EXPECT_TRUE(is_numbered_layer("transformer.h.3"));
    EXPECT_TRUE(is_numbered_layer("encoder_layer_0"));
    EXPECT_FALSE(is_numbered_layer("layernorm"));
    EXPECT_FALSE(is_numbered_layer("Layer 3 attention"));
    EXPECT_FALSE(is_numbered_layer("Train step 3"));
}

PlaceId path(Places& places, std::initializer_list<std::string_view> ranges) {
    PlaceId id = 0;
    for (const std::string_view range : ranges) id = places.child(id, range).id;
    return id;
}

TEST(Places, ALayerBeginsAtItsNumber) {
    Places places;
    const Place forward = places[path(places, {"gpt2_forward", "Layer 2", "attention"})];
    EXPECT_EQ(forward.layer, "Layer 2/attention");
    EXPECT_EQ(forward.phase, Phase::forward);
    const Place backward =
        places[path(places, {"gpt2_backward_and_reduce", "classifier_and_loss", "Layer 2", "attention"})];
    EXPECT_EQ(backward.layer, "Layer 2/attention") << "deeper, and still the same layer";
    EXPECT_EQ(backward.phase, Phase::backward);
}

TEST(Places, WithoutANumberTheRangesInsideOfThePhase) {
    Places places;
    EXPECT_EQ(places[path(places, {"forward", "encoder"})].layer, "encoder");
    EXPECT_EQ(places[path(places, {"forward"})].layer, "forward");
    EXPECT_EQ(places[path(places, {"model", "head"})].layer, "model/head");
    EXPECT_EQ(places[0].layer, "");
}

TEST(Places, TheSamePathIsOnePlace) {
    Places places;
    EXPECT_EQ(path(places, {"a", "b"}), path(places, {"a", "b"}));
    EXPECT_NE(path(places, {"a", "b"}), path(places, {"b", "a"}));
    for (int i = 0; i < 70'000; ++i) places.child(0, "batch-" + std::to_string(i));
    EXPECT_GT(places.dropped(), 0u) << "names without end take no memory without end";
}

TEST(ThreadRanges, EachDomainHasItsOwnStack) {
    ThreadRanges ranges;
    bool unbalanced = false;
    ranges.push(1, 0, true);
    ranges.push(2, 5, false);
    EXPECT_TRUE(ranges.pop(0, unbalanced)) << "the step, below the range of another domain";
    EXPECT_FALSE(ranges.pop(5, unbalanced));
    EXPECT_EQ(ranges.place, 0u);
    EXPECT_FALSE(unbalanced);
    EXPECT_FALSE(ranges.pop(0, unbalanced));
    EXPECT_TRUE(unbalanced);
}

TEST(ThreadRanges, RangesThatAreTooDeepAreCounted) {
    ThreadRanges ranges;
    bool unbalanced = false;
    for (int i = 0; i < ThreadRanges::kDeepest + 3; ++i) ranges.push(1, 0, i == 0);
    for (int i = 0; i < ThreadRanges::kDeepest + 2; ++i) EXPECT_FALSE(ranges.pop(0, unbalanced));
    EXPECT_TRUE(ranges.pop(0, unbalanced)) << "the outermost one is the step";
    EXPECT_FALSE(unbalanced);
}

}  // namespace
}  // namespace mp::raw
