#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

constexpr const char* kStep =
    "call 6:9 torch.optim.AdamW.step kind=method args=[{object name=opt}]\n";
constexpr const char* kUnknownStep = "call 6:9 ?.step kind=method args=[{other name=opt}]\n";
constexpr const char* kZero = "call 7:9 ?.zero_grad kind=method args=[{other name=opt}]\n";
constexpr const char* kConvert =
    "call 1:1 habana_frameworks.torch.hpex.hmp.convert\n";
constexpr const char* kDisable =
    "call 5:10 habana_frameworks.torch.hpex.hmp.disable_casts kind=constructor\n"
    "call 5:10 habana_frameworks.torch.hpex.hmp.disable_casts.__enter__ kind=method "
    "args=[{object call=1}]\n";
constexpr const char* kDisabledEnd =
    "call 5:10 habana_frameworks.torch.hpex.hmp.disable_casts.__exit__ kind=method "
    "args=[{object call=2}]\n";

TEST(OptimizerStepInRegion, AStepInAnAutocastBlockIsAWarning) {
    EXPECT_THAT(lint("MP108", {python(open() + kStep + close())}), ElementsAre("warning 6"));
}

TEST(OptimizerStepInRegion, AStepAfterTheBlockIsSilent) {
    EXPECT_THAT(lint("MP108", {python(open() + close() + kStep)}), IsEmpty());
}

TEST(OptimizerStepInRegion, AnUnknownObjectIsAnOptimizerWhenItZeroesGradients) {
    EXPECT_THAT(lint("MP108", {python(open() + kUnknownStep + kZero + close())}),
                ElementsAre("warning 6"));
}

TEST(OptimizerStepInRegion, AnUnknownObjectWithOnlyAStepIsSilent) {
    EXPECT_THAT(lint("MP108", {python(open() + kUnknownStep + close())}), IsEmpty());
}

TEST(OptimizerStepInRegion, ASchedulerIsSilent) {
    EXPECT_THAT(lint("MP108", {python(open() +
                                      "call 6:9 torch.optim.lr_scheduler.StepLR.step kind=method "
                                      "args=[{object name=s}]\n" +
                                      close())}),
                IsEmpty());
}

TEST(OptimizerStepInRegion, AfterHmpConvertAStepIsAnError) {
    EXPECT_THAT(lint("MP108", {python(std::string(kConvert) + kStep)}), ElementsAre("error 6"));
}

TEST(OptimizerStepInRegion, AfterHmpConvertAClipCountsToo) {
    EXPECT_THAT(lint("MP108", {python(std::string(kConvert) +
                                      "call 6:9 torch.nn.utils.clip_grad_norm_ "
                                      "args=[{other name=p} {constant=1.0}]\n")}),
                ElementsAre("error 6"));
}

TEST(OptimizerStepInRegion, UnderDisableCastsItIsSilent) {
    EXPECT_THAT(lint("MP108", {python(std::string(kConvert) + kDisable + kStep + kDisabledEnd)}),
                IsEmpty());
}

TEST(OptimizerStepInRegion, HabanasFusedOptimizerIsSilent) {
    EXPECT_THAT(lint("MP108", {python(std::string(kConvert) +
                                      "call 6:9 habana_frameworks.torch.hpex.optimizers.FusedAdamW"
                                      ".step kind=method args=[{object name=opt}]\n")}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
