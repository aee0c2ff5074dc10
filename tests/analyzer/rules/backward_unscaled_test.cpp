#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

const std::string kEnd = on_scaler(8, "step") + on_scaler(9, "update");

TEST(BackwardUnscaled, PlainBackwardThenScalerStepIsAnError) {
    EXPECT_THAT(lint("MP202", {training(made_scaler() + plain_backward(4) + kEnd)}), ElementsAre("error 4"));
    EXPECT_THAT(lint("MP202", {training(made_scaler() + scaled_backward(4) + kEnd)}), IsEmpty());
}

TEST(BackwardUnscaled, OneOfTwoLossesUnscaled) {
    EXPECT_THAT(lint("MP202", {training(scaled_backward(4) + plain_backward(5) + kEnd)}),
                ElementsAre("error 5"));
}

TEST(BackwardUnscaled, ADisabledScalerDividesNothing) {
    EXPECT_THAT(
        lint("MP202", {training(made_scaler("{constant=false keyword=enabled}") + plain_backward(4) + kEnd)}),
        IsEmpty());
}

TEST(BackwardUnscaled, TheBranchWithoutAScalerIsSilent) {
    const std::string facts =
        training(made_scaler("{keyword=enabled name=amp}") + scaled_backward(4, 4) + plain_backward(5, 5) +
                     on_scaler(6, "step", 6) + on_scaler(7, "update", 6),
                 "    block to=[{4 condition=amp} {5 condition=amp when=false}]\n"
                 "    block to=[6]\n    block to=[6]\n    block to=[1]\n");
    EXPECT_THAT(lint("MP202", {facts}), IsEmpty());
}

TEST(BackwardUnscaled, ALossThatTheCallerPassesMayBeScaled) {
    EXPECT_THAT(lint("MP202", {training(call_line(4,
                                                  "?.backward kind=method args=[{name=loss2 param=0}] "
                                                  "block=2") +
                                        kEnd)}),
                IsEmpty());
}

std::string lightning(std::string_view precision) {
    return "unit lit.py language=python\n"
           "  func 1:5 lit.main kind=python\n"
           "    call 2:5-30 lightning.Trainer kind=constructor args=[{constant=\"'" +
           std::string(precision) +
           "'\" keyword=precision}]\n"
           "  func 5:5 lit.Net.training_step kind=python parent_class=lit.Net "
           "bases=[lightning.LightningModule] params=[{name=self}]\n"
           "    call 6:5-30 lightning.LightningModule.optimizers kind=method args=[{name=self "
           "param=0}]\n"
           "    call 7:9-24 ?.backward kind=method args=[{name=loss text=loss span=7:9-13}]\n";
}

TEST(BackwardUnscaled, ManualOptimizationOfLightningHasItsOwnBackward) {
    EXPECT_THAT(lint("MP202", {lightning("16-mixed")}), ElementsAre("error 7"));
    EXPECT_THAT(lint("MP202", {lightning("bf16-mixed")}), IsEmpty());
    const Findings found = findings("MP202", {lightning("16-mixed")});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_EQ(found[0].edits[0].text, "self.manual_backward(loss)");
}

std::string accelerated(std::string_view backward) {
    return "unit run.py language=python\n  func 1:5 run.main kind=python\n"
           "    call 2:5-30 accelerate.Accelerator kind=constructor args=[{constant=\"'fp16'\" "
           "keyword=mixed_precision}] result.name=accelerator\n"
           "    call 3:5-30 accelerate.Accelerator.prepare kind=method args=[{name=accelerator "
           "call=0} "
           "{name=model}]\n" +
           std::string(backward);
}

TEST(BackwardUnscaled, AccelerateHasItsOwnBackward) {
    EXPECT_THAT(lint("MP202", {accelerated("    call 4:5-30 ?.backward kind=method args=[{name=loss}]\n")}),
                ElementsAre("error 4"));
    EXPECT_THAT(lint("MP202", {accelerated("    call 4:5-30 accelerate.Accelerator.backward kind=method "
                                           "args=[{name=accelerator call=0} {name=loss}]\n")}),
                IsEmpty());
}

TEST(BackwardUnscaled, ScriptsOfOneNameAreNotOneProgram) {
    const auto script = [](std::string folder, std::string main, std::string step) {
        return "unit /p/" + folder + "/t.py language=python\n  func 1:5 t.main kind=python\n" + main +
               "  func 11:5 t.update kind=python params=[{name=opt} {name=scaler}]\n" + step;
    };
    const std::string own =
        "    call 3:5-30 ?.backward kind=method args=[{name=loss}]\n"
        "    call 4:5-30 t.update callee=t.update args=[{name=opt}]\n";
    const std::string scaled =
        "    call 12:5-30 torch.amp.GradScaler kind=constructor result.name=scaler\n"
        "    call 13:5-30 torch.amp.GradScaler.step kind=method args=[{name=scaler call=0} {name=opt}]\n"
        "    call 14:5-30 torch.amp.GradScaler.update kind=method args=[{name=scaler call=0}]\n";
    const std::string plain = "    call 12:5-30 torch.optim.SGD.step kind=method args=[{name=opt}]\n";
    EXPECT_THAT(lint("MP202", {script("a", "", scaled), script("b", own, plain)}), IsEmpty());
    EXPECT_EQ(lint("MP202", {script("a", own, scaled)}).size(), 1U);
}

// A step with a DeepSpeed engine; `loss` is what backward is called on.
std::string deepspeed(std::string_view setting, std::string_view loss = "{tensor call=1 name=loss}") {
    return "unit a.py language=python\n  func 1:5 a.f kind=python\n"
           "    call 3:9 deepspeed.DeepSpeedEngine.forward kind=method args=[{module name=engine} "
           "{other name=x}] result.name=y\n"
           "    call 4:9 torch.nn.functional.mse_loss op=mse_loss args=[{other call=0 name=y} {other "
           "name=t}] result.name=loss result.shape=tensor\n"
           "    call 5:9 torch.Tensor.backward kind=method args=[" +
           std::string(loss) +
           "]\n"
           "    call 6:9 deepspeed.DeepSpeedEngine.step kind=method args=[{module name=engine}]\n" +
           std::string(setting);
}

constexpr const char* kFp16 = "    setting 1:1 fp16.enabled value.constant=true\n";
constexpr const char* kBf16 = "    setting 1:2 bf16.enabled value.constant=true\n";

TEST(BackwardUnscaled, ALossOfADeepSpeedEngineInFp16IsAnError) {
    const auto found = findings("MP202", {deepspeed(kFp16)});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].severity, Severity::error);
    EXPECT_THAT(found[0].fix, HasSubstr("engine.backward(loss)"));
}

TEST(BackwardUnscaled, DeepSpeedInAnotherPrecisionIsSilent) {
    EXPECT_THAT(lint("MP202", {deepspeed(kBf16)}), IsEmpty());
    EXPECT_THAT(lint("MP202", {deepspeed("")}), IsEmpty());
    EXPECT_THAT(lint("MP202", {deepspeed(std::string(kFp16) + kBf16)}), IsEmpty());
}

TEST(BackwardUnscaled, ALossThatTheEngineDidNotComputeIsSilent) {
    EXPECT_THAT(lint("MP202", {deepspeed(kFp16, "{tensor name=other}")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
