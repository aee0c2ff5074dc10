#include "tests/analyzer/rules/region_facts.hpp"

namespace mp::lint::test {
namespace {

constexpr const char* kToHalf =
    "call 7:9 at::Tensor::to kind=method op=to args=[{tensor name=x}] result.dtype=fp16 "
    "result.shape=tensor\n";

TEST(ManualCastInAutocast, CastInARegionOfAnotherFileIsAWarning) {
    EXPECT_THAT(lint("MP101", {step(), inner(kToHalf)}), ElementsAre("warning 7"));
}

TEST(ManualCastInAutocast, TheRegionIsShown) {
    const auto found = findings("MP101", {step(), inner(kToHalf)});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_FALSE(found[0].notes.empty());
    EXPECT_EQ(found[0].notes.front().span.line, 3u);
    EXPECT_EQ(found[0].notes.front().span.file.str(), "step.cpp");
}

TEST(ManualCastInAutocast, WithoutARegionItIsSilent) {
    EXPECT_THAT(lint("MP101", {inner(kToHalf)}), IsEmpty());
}

TEST(ManualCastInAutocast, UpcastsAreSilent) {
    EXPECT_THAT(lint("MP101", {step(), inner("call 7:9 at::Tensor::to op=to args=[{tensor name=x}] "
                                             "result.dtype=fp32 result.shape=tensor\n")}),
                IsEmpty());
}

TEST(ManualCastInAutocast, CastToASavedDtypeIsNotKnownAndSilent) {
    EXPECT_THAT(
        lint("MP101",
             {step(),
              inner("call 7:9 at::Tensor::to op=to args=[{tensor name=x} {name=input_dtype}] "
                    "result.shape=tensor\n")}),
        IsEmpty());
}

TEST(ManualCastInAutocast, FunctionsThatAskForTheStateAreSilent) {
    EXPECT_THAT(lint("MP101",
                     {step(), inner(std::string("call 6:9 at::autocast::is_enabled\n") + kToHalf)}),
                IsEmpty());
}

TEST(ManualCastInAutocast, GradientFreeScopesAreSilent) {
    EXPECT_THAT(
        lint("MP101", {step(), inner(std::string("call 6:9 torch::NoGradGuard kind=constructor\n") +
                                     kToHalf)}),
        IsEmpty());
}

TEST(ManualCastInAutocast, CastForARawKernelIsSilent) {
    EXPECT_THAT(lint("MP101", {step(), inner(std::string(kToHalf) +
                                             "call 7:30 at::Tensor::data_ptr kind=method "
                                             "args=[{fp16 tensor call=0}]\n")}),
                IsEmpty());
}

TEST(ManualCastInAutocast, AfterTheRegionIsClosedItIsSilent) {
    EXPECT_THAT(
        lint("MP101",
             {step() + "    call 6:5 at::Tensor::to op=to args=[{tensor name=x}] result.dtype=fp16 "
                       "result.shape=tensor\n"}),
        IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
