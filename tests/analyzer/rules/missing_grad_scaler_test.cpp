#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

std::string region(std::string_view arguments, std::string_view entered = "") {
    return call_line(3, "torch.amp.autocast kind=constructor args=[" + std::string(arguments) +
                            "] block=2") +
           call_line(3, "torch.amp.autocast.__enter__ kind=method args=[{call=" +
                            std::string("0} ") + std::string(entered) + "] block=2");
}
const std::string kSteps = plain_backward(5) + on_optimizer(6, "step");
constexpr std::string_view kCuda = "{constant=\"'cuda'\"}";

TEST(MissingGradScaler, CudaAutocastWithoutADtypeIsFp16) {
    EXPECT_THAT(lint("MP201", {training(region(kCuda) + kSteps)}), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP201", {training(kSteps)}), IsEmpty());
    EXPECT_THAT(lint("MP201", {training(region("{constant=\"'cpu'\"}") + kSteps)}), IsEmpty());
}

TEST(MissingGradScaler, Bf16NeedsNoScale) {
    const std::string bf16 =
        "{constant=\"'cuda'\"} {bf16 dtype constant=torch.bfloat16 keyword=dtype}";
    EXPECT_THAT(lint("MP201", {training(region(bf16) + kSteps)}), IsEmpty());
}

TEST(MissingGradScaler, ARegionUnderAFlagIsAWarning) {
    EXPECT_THAT(lint("MP201", {training(region("{constant=\"'cuda'\"} {name=amp keyword=enabled}") +
                                        kSteps)}),
                ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP201", {training(region(kCuda, "{name=amp keyword=<when>}") + kSteps)}),
                ElementsAre("warning 5"));
}

TEST(MissingGradScaler, InferenceTrainsNothing) {
    EXPECT_THAT(lint("MP201", {training(region(kCuda) + kSteps)}, Profile::inference), IsEmpty());
}

TEST(MissingGradScaler, AScalerOrAnEngineOfTheProgramIsEnough) {
    EXPECT_THAT(lint("MP201", {training(region(kCuda) + kSteps +
                                        "    call 2:5-20 torch.amp.GradScaler kind=constructor "
                                        "result.name=scaler\n")}),
                IsEmpty());
    EXPECT_THAT(
        lint("MP201", {training(region(kCuda) + kSteps +
                                "    call 2:5-20 accelerate.Accelerator kind=constructor\n")}),
        IsEmpty());
}

TEST(MissingGradScaler, ALossMultipliedByHandIsScaled) {
    EXPECT_THAT(
        lint(
            "MP201",
            {training(region(kCuda) +
                      call_line(4, "?.__mul__ kind=op args=[{name=loss} {constant=1024}] block=2") +
                      call_line(5, "?.backward kind=method args=[{call=2}] block=2") +
                      on_optimizer(6, "step"))}),
        IsEmpty());
}

std::string half_model(std::string_view dtype) {
    return "unit t.py language=python\n  func 1:5 t.train kind=python params=[{name=net}]\n"
           "    call 2:5-30 torch.optim.SGD kind=constructor args=[{" + std::string(dtype) +
           " parameters}] result.name=opt\n"
           "    call 3:5-30 ?.backward kind=method args=[{name=loss}]\n"
           "    call 4:5-30 torch.optim.SGD.step kind=method args=[{name=opt call=0}]\n";
}

TEST(MissingGradScaler, Fp16ParametersNeedAScaleToo) {
    EXPECT_THAT(lint("MP201", {half_model("fp16")}), ElementsAre("error 3"));
    EXPECT_THAT(lint("MP201", {half_model("bf16")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
