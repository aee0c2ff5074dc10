#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

constexpr const char* kStep = "call 6:9 torch.optim.AdamW.step kind=method args=[{object name=opt}]\n";
constexpr const char* kUnknownStep = "call 6:9 ?.step kind=method args=[{other name=opt}]\n";
constexpr const char* kZero = "call 7:9 ?.zero_grad kind=method args=[{other name=opt}]\n";
constexpr const char* kConvert = "call 1:1 habana_frameworks.torch.hpex.hmp.convert\n";
constexpr const char* kDisable =
    "call 5:10 habana_frameworks.torch.hpex.hmp.disable_casts kind=constructor\n"
    "call 5:10 habana_frameworks.torch.hpex.hmp.disable_casts.__enter__ kind=method "
    "args=[{object call=1}]\n";
constexpr const char* kDisabledEnd =
    "call 5:10 habana_frameworks.torch.hpex.hmp.disable_casts.__exit__ kind=method "
    "args=[{object call=2}]\n";

constexpr const char* kMatrixStep = "call 6:9 torch.optim.Muon.step kind=method args=[{object name=opt}]\n";

TEST(OptimizerStepInRegion, AStepThatMultipliesMatricesInAnAutocastBlockIsAWarning) {
    EXPECT_THAT(lint("MP108", {python(open() + kMatrixStep + close())}), ElementsAre("warning 6"));
    EXPECT_THAT(lint("MP108", {python(open() + kStep + close())}), IsEmpty()) << "elementwise: the same bits";
}

TEST(OptimizerStepInRegion, AStepAfterTheBlockIsSilent) {
    EXPECT_THAT(lint("MP108", {python(open() + close() + kMatrixStep)}), IsEmpty());
}

TEST(OptimizerStepInRegion, AnUnknownObjectIsAnOptimizerWhenItZeroesGradients) {
    EXPECT_THAT(lint("MP108", {python(std::string(kConvert) + kUnknownStep + kZero)}),
                ElementsAre("error 6"));
}

TEST(OptimizerStepInRegion, AnUnknownObjectWithOnlyAStepIsSilent) {
    EXPECT_THAT(lint("MP108", {python(std::string(kConvert) + kUnknownStep)}), IsEmpty());
}

TEST(OptimizerStepInRegion, ASchedulerIsSilent) {
    EXPECT_THAT(lint("MP108", {python(kConvert + std::string() +
                                      "call 6:9 torch.optim.lr_scheduler.StepLR.step kind=method "
                                      "args=[{object name=s}]\n")}),
                IsEmpty());
}

TEST(OptimizerStepInRegion, AfterHmpConvertAStepIsAnError) {
    EXPECT_THAT(lint("MP108", {python(std::string(kConvert) + kStep)}), ElementsAre("error 6"));
}

TEST(OptimizerStepInRegion, AfterHmpConvertAClipCountsToo) {
    EXPECT_THAT(lint("MP108", {python(std::string(kConvert) + "call 6:9 torch.nn.utils.clip_grad_norm_ "
                                                              "args=[{other name=p} {constant=1.0}]\n")}),
                ElementsAre("error 6"));
}

TEST(OptimizerStepInRegion, UnderDisableCastsItIsSilent) {
    EXPECT_THAT(lint("MP108", {python(std::string(kConvert) + kDisable + kStep + kDisabledEnd)}), IsEmpty());
}

TEST(OptimizerStepInRegion, HabanasFusedOptimizerIsSilent) {
    EXPECT_THAT(lint("MP108", {python(std::string(kConvert) +
                                      "call 6:9 habana_frameworks.torch.hpex.optimizers.FusedAdamW"
                                      ".step kind=method args=[{object name=opt}]\n")}),
                IsEmpty());
}

// `(1.0 - mask) * LIMIT`, where `finfo` is the argument of torch.finfo.
std::string mask(std::string_view limit, std::string_view finfo = "") {
    return std::string(kConvert) +
           "call 5:9 ?.__sub__ kind=op op=sub args=[{constant=1} {other name=mask}]\n"
           "call 5:20 torch.finfo kind=constructor args=[" +
           std::string(finfo) +
           "]\n"
           "call 5:9 ?.__mul__ kind=op op=mul args=[{other call=1} " +
           std::string(limit) + "]\n";
}

constexpr const char* kMin = "{call=2 text=torch.finfo(d).min}";

TEST(OptimizerStepInRegion, AMaskOfFp32sLimitUnderHmpIsAnError) {
    EXPECT_THAT(lint("MP108", {python(mask(kMin, "{fp32 dtype constant=torch.float32}"))}),
                ElementsAre("error 5"));
    EXPECT_THAT(lint("MP108", {python(mask("{constant=-3.4028235e+38}"))}), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP108", {python(mask(kMin, "{other dtype name=dtype}"))}), ElementsAre("warning 5"));
}

TEST(OptimizerStepInRegion, AMaskThatBf16HoldsIsSilent) {
    EXPECT_THAT(lint("MP108", {python(mask(kMin, "{bf16 dtype constant=torch.bfloat16}"))}), IsEmpty());
    EXPECT_THAT(lint("MP108", {python(mask("{constant=-1e+09}"))}), IsEmpty());
}

TEST(OptimizerStepInRegion, TheFixOfAStepUnderHmpDisablesCastsAroundIt) {
    const std::string import =
        "unit train.py language=python\n  func 1:1 train.<module> kind=python\n"
        "    type 1:1 habana_frameworks.torch.hpex.hmp alias=train.hmp\n"
        "  func 1:5 train.step kind=python params=[{name=model}]\n";
    const auto found = findings("MP108", {import + kConvert +
                                          "call 6:9-19 torch.optim.AdamW.step "
                                          "kind=method args=[{object name=opt}]\n"});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_TRUE(found[0].safe_edits);
    EXPECT_EQ(found[0].edits[0].text, "with hmp.disable_casts():\n            ");
}

}  // namespace
}  // namespace mp::lint::test
