#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

std::string region(std::string_view arguments, std::string_view entered = "") {
    return call_line(3, "torch.amp.autocast kind=constructor args=[" + std::string(arguments) + "] block=2") +
           call_line(3, "torch.amp.autocast.__enter__ kind=method args=[{call=" + std::string("0} ") +
                            std::string(entered) + "] block=2");
}
const std::string kSteps = plain_backward(5) + on_optimizer(6, "step");
constexpr std::string_view kCuda = "{constant=\"'cuda'\"}";

TEST(MissingGradScaler, CudaAutocastWithoutADtypeIsFp16) {
    EXPECT_THAT(lint("MP201", {training(region(kCuda) + kSteps)}), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP201", {training(kSteps)}), IsEmpty());
    EXPECT_THAT(lint("MP201", {training(region("{constant=\"'cpu'\"}") + kSteps)}), IsEmpty());
}

TEST(MissingGradScaler, Bf16NeedsNoScale) {
    const std::string bf16 = "{constant=\"'cuda'\"} {bf16 dtype constant=torch.bfloat16 keyword=dtype}";
    EXPECT_THAT(lint("MP201", {training(region(bf16) + kSteps)}), IsEmpty());
}

TEST(MissingGradScaler, ARegionUnderAFlagIsAWarning) {
    EXPECT_THAT(
        lint("MP201", {training(region("{constant=\"'cuda'\"} {name=amp keyword=enabled}") + kSteps)}),
        ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP201", {training(region(kCuda, "{name=amp keyword=<when>}") + kSteps)}),
                ElementsAre("warning 5"));
}

TEST(MissingGradScaler, AFlagForFp16IsAWarningAnOptionANote) {
    const auto with = [](std::string_view low) {
        const std::string dtype = "{other alternative=" + std::string(low) + " keyword=dtype}";
        return lint("MP201", {training(region("{constant=\"'cuda'\"} " + dtype) + kSteps)});
    };
    EXPECT_THAT(with("torch.lowp"), ElementsAre("note 5"));
    EXPECT_THAT(with("torch.float16"), ElementsAre("warning 5"));
    EXPECT_THAT(with("torch.bf16"), IsEmpty());
}

TEST(MissingGradScaler, InferenceTrainsNothing) {
    EXPECT_THAT(lint("MP201", {training(region(kCuda) + kSteps)}, Profile::inference), IsEmpty());
}

TEST(MissingGradScaler, AScalerOrAnEngineOfTheProgramIsEnough) {
    EXPECT_THAT(
        lint("MP201", {training(region(kCuda) + kSteps +
                                "    call 2:5-20 torch.amp.GradScaler kind=constructor "
                                "result.name=scaler\n    call 3:5-20 t.save args=[{name=scaler}]\n")}),
        IsEmpty());
    EXPECT_THAT(lint("MP201", {training(region(kCuda) + kSteps +
                                        "    call 2:5-20 accelerate.Accelerator kind=constructor\n")}),
                IsEmpty());
}

TEST(MissingGradScaler, ALossMultipliedByHandIsScaled) {
    EXPECT_THAT(
        lint("MP201", {training(region(kCuda) +
                                call_line(4, "?.__mul__ kind=op args=[{name=loss} {constant=1024}] block=2") +
                                call_line(5, "?.backward kind=method args=[{call=2}] block=2") +
                                on_optimizer(6, "step"))}),
        IsEmpty());
}

std::string half_model(std::string_view dtype) {
    return "unit t.py language=python\n  func 1:5 t.train kind=python params=[{name=net}]\n"
           "    call 2:5-30 torch.optim.SGD kind=constructor args=[{" +
           std::string(dtype) +
           " parameters}] result.name=opt\n"
           "    call 3:5-30 ?.backward kind=method args=[{name=loss}]\n"
           "    call 4:5-30 torch.optim.SGD.step kind=method args=[{name=opt call=0}]\n";
}

TEST(MissingGradScaler, Fp16ParametersNeedAScaleToo) {
    EXPECT_THAT(lint("MP201", {half_model("fp16")}), ElementsAre("error 3"));
    EXPECT_THAT(lint("MP201", {half_model("bf16")}), IsEmpty());
}

std::string update_kernel(std::string_view factor, std::string_view more = "",
                          std::string_view dtype = "fp16") {
    return "unit t.cu language=cuda\n"
           "  func 20:5 adam kind=kernel params=[{" +
           std::string(dtype) +
           " pointer name=g} {fp32 name=scale}]\n"
           "    scaling 22:5-30 g param=0 dtype=" +
           std::string(dtype) + " factor.dtype=fp32 factor.param=1 averages\n" + std::string(more) +
           "  func 50:5 main\n"
           "    call 53:5-30 adam kind=kernel callee=adam args=[{pointer} {fp32 name=s " +
           std::string(factor) + "}]\n";
}

TEST(MissingGradScaler, AnUpdateKernelWhoseGradientsHaveTheFactorOne) {
    EXPECT_THAT(lint("MP201", {update_kernel("constant=1")}), ElementsAre("warning 22"));
    EXPECT_THAT(lint("MP201", {update_kernel("alternative=1")}), ElementsAre("warning 22"));
    EXPECT_THAT(lint("MP201", {update_kernel("constant=1", "", "bf16")}), IsEmpty());
}

TEST(MissingGradScaler, ACallThatPassesZeroPassesNoGradient) {
    const std::string reset =
        "  func 60:5 reset\n    call 61:5-30 adam kind=kernel callee=adam "
        "args=[{pointer} {fp32 constant=0}]\n";
    EXPECT_THAT(lint("MP201", {update_kernel("constant=1") + reset}), ElementsAre("warning 22"));
    EXPECT_THAT(lint("MP201", {update_kernel("constant=0")}), IsEmpty());
}

TEST(MissingGradScaler, AnUpdateKernelThatMayTakeAScaleOutIsSilent) {
    EXPECT_THAT(lint("MP201", {update_kernel("constant=0.0078125")}), IsEmpty());
    EXPECT_THAT(lint("MP201", {update_kernel("text=unknown")}), IsEmpty());
    EXPECT_THAT(lint("MP201", {update_kernel("constant=1", "    call 23:5-9 isinf args=[{fp32}]\n")}),
                IsEmpty());
    EXPECT_THAT(lint("MP201", {update_kernel("constant=1",
                                             "  func 10:5 loss kind=kernel params=[{fp16 pointer name=g}]\n"
                                             "    scaling 12:5-30 g param=0 dtype=fp16 "
                                             "factor.dtype=fp32 factor.constant=1024 stored\n")}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
