#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

// total += loss in a loop that trains.
std::string total(std::string dtype, std::string added, std::string more = "", std::string before = "") {
    return python(before +
                  "    call 6:9 torch.Tensor.backward kind=method args=[{name=loss}] loop_depth=1\n"
                  "    call 7:9-22 ?.__iadd__ kind=op op=add in_place args=[{name=total} " +
                  added +
                  "] loop_depth=1\n"
                  "    accumulate 7:9-22 total dtype=" +
                  dtype + " shape=tensor loop_depth=1 declared=4:5-10 call=" + (before.empty() ? "1" : "2") +
                  more + "\n");
}

TEST(RunningAccumulatorInHalf, ATotalOverSteps) {
    EXPECT_THAT(lint("MP410", {total("bf16", "{name=loss}")}), ElementsAre("warning 7"));
    EXPECT_THAT(lint("MP410", {total("fp32", "{name=loss}")}), IsEmpty());
    EXPECT_THAT(lint("MP410", {total("unknown", "{name=loss}")}), IsEmpty());
}

TEST(RunningAccumulatorInHalf, ItIsNotMp401sAsWell) {
    EXPECT_THAT(lint("MP401", {total("bf16", "{name=loss}")}), IsEmpty());
}

TEST(RunningAccumulatorInHalf, FewTermsAndOtherOperations) {
    EXPECT_THAT(lint("MP410", {total("bf16", "{name=loss}", " trips=32")}), IsEmpty());
    EXPECT_THAT(lint("MP410", {total("bf16", "{name=loss}", " trips=33")}), ElementsAre("warning 7"));
    EXPECT_THAT(lint("MP410", {total("bf16", "{name=loss}", " op=max")}), IsEmpty());
}

TEST(RunningAccumulatorInHalf, WhatIsComputedFromTheTotalIsNoSum) {
    EXPECT_THAT(lint("MP410", {total("bf16", "{other call=0}", "",
                                     "    call 5:9 pkg.block args=[{name=total}] loop_depth=1\n")}),
                IsEmpty());
}

TEST(RunningAccumulatorInHalf, ANumberTakesTheDtypeOfWhatIsAdded) {
    const auto from_zero = [](std::string dtype) {
        return lint("MP410", {python("    call 6:9 torch.Tensor.backward kind=method args=[{name=loss}] "
                                     "loop_depth=1\n"
                                     "    call 7:9 ?.__iadd__ kind=op op=add in_place args=[{name=total} {" +
                                     dtype +
                                     " tensor name=loss}] loop_depth=1\n"
                                     "    accumulate 7:9 total shape=scalar loop_depth=1 call=1\n")});
    };
    EXPECT_THAT(from_zero("fp16"), ElementsAre("warning 7"));
    EXPECT_THAT(from_zero("fp32"), IsEmpty());
}

TEST(RunningAccumulatorInHalf, FixWidensWhatIsAdded) {
    const auto found = findings("MP410", {total("bf16", "{name=loss span=7:18-22}")});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_EQ(found[0].edits[0].text, "loss.float()");
    EXPECT_FALSE(found[0].safe_edits);
}

TEST(RunningAccumulatorInHalf, GradientAccumulationByConfiguration) {
    const auto set = [](std::string value) {
        return lint("MP410", {python("    setting 3:1 data_types.grad_accum_dtype "
                                     "value.constant=\"'" +
                                     value + "'\"\n")});
    };
    EXPECT_THAT(set("bf16"), ElementsAre("warning 3"));
    EXPECT_THAT(set("fp32"), IsEmpty());
}

TEST(RunningAccumulatorInHalf, InferenceIsSilent) {
    EXPECT_THAT(lint("MP410", {total("bf16", "{name=loss}")}, Profile::inference), IsEmpty());
}

// A loop that collects `value` of a step, and then `total` of the list.
std::string collects(std::string_view value, std::string_view total,
                     std::string_view step = "torch.Tensor.backward") {
    return python(
        "    call 3:5 list kind=constructor result.name=losses\n"
        "    call 5:5 " +
        std::string(step) +
        " kind=method args=[{tensor name=loss}] loop_depth=1\n"
        "    call 6:5 ?.append kind=method args=[{other call=0 name=losses} {" +
        std::string(value) + "}] loop_depth=1\n" + std::string(total));
}

constexpr const char* kMean =
    "    call 8:5 torch.stack op=stack args=[{other call=0 name=losses}] result.shape=tensor\n"
    "    call 9:5 torch.Tensor.mean kind=method op=mean args=[{tensor call=3}]\n";
constexpr const char* kSum = "    call 9:5 sum args=[{other call=0 name=losses}]\n";

TEST(RunningAccumulatorInHalf, TheMeanOfCollectedHalfLossesIsAWarning) {
    EXPECT_THAT(lint("MP410", {collects("fp16 tensor name=loss", kMean)}), ElementsAre("warning 9"));
    EXPECT_THAT(lint("MP410", {collects("bf16 tensor name=loss", kSum)}), ElementsAre("warning 9"));
}

TEST(RunningAccumulatorInHalf, CollectedFp32LossesAndLayersAreSilent) {
    EXPECT_THAT(lint("MP410", {collects("fp32 tensor name=loss", kMean)}), IsEmpty());
    EXPECT_THAT(lint("MP410", {collects("other name=loss", kMean)}), IsEmpty());
    EXPECT_THAT(lint("MP410", {collects("fp16 tensor name=h", kMean, "?.forward")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
